"""Groups as they are now, described, and described again whenever they change."""
