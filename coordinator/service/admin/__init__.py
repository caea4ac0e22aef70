"""AdminService and BackupService, for operators and tools."""
