"""The courier: who brings messages to addresses that tenants name."""
