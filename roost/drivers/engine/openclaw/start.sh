# Runs OpenClaw's gateway: sh start.sh CONFIG PLATFORM_CONFIG PROGRAM...
# If the engine rejects the config (exit 78), rename it to CONFIG.rejected and use the platform's, so that an agent cannot
# prevent the start of its gateway. Because 78 has other causes too, the engine has to confirm that the config is invalid.
config=$1 platform=$2
shift 2
trap : TERM INT
"$@" gateway run
code=$?
[ "$code" -eq 78 ] || exit "$code"
"$@" config validate --json 2>/dev/null | grep -Eq '"valid": ?false' || exit "$code"
echo "roost: the engine rejected $config; it is renamed to $config.rejected and the gateway starts without it" >&2
mv -f "$config" "$config.rejected" && cp "$platform" "$config" && exec "$@" gateway run
