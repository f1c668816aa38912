"""Connections to hosts that agents and tenants name: address policy, name resolution, guarded HTTP."""
