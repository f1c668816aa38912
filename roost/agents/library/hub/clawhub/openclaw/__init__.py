"""What OpenClaw's own client asks a registry of ClawHub's protocol besides: how to install, and whether it is safe."""
