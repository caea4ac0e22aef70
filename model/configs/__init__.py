"""Settings of the coordinator and configs of groups: their names, defaults and bounds."""
