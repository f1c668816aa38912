# Runs OpenClaw's gateway: sh start.sh CONFIG PLATFORM_CONFIG PROGRAM...
# A config that the engine refuses (exit 78) is kept aside as CONFIG.rejected and the platform's own takes its place, so
# that what an agent wrote cannot keep its gateway from starting. 78 has other causes too: the engine is asked, and only
# its plain no counts, not that it could not answer.
config=$1 platform=$2
shift 2
trap : TERM INT
"$@" gateway run
code=$?
[ "$code" -eq 78 ] || exit "$code"
"$@" config validate --json 2>/dev/null | grep -Eq '"valid": ?false' || exit "$code"
echo "roost: the engine refused $config; it is kept as $config.rejected and the gateway starts without it" >&2
mv -f "$config" "$config.rejected" && cp "$platform" "$config" && exec "$@" gateway run
