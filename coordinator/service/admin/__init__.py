"""AdminService and BackupService: what people and tools ask."""
