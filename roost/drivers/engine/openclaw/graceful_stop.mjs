// Loaded into the gateway's process before the engine. The engine's own proxy ends the process with 143 at SIGTERM while
// the gateway still closes. Such a stop counts as a crash, and after three in five minutes the engine starts without its
// channels. If a gateway listens to the signal, only the gateway may end the process.
const { exit } = process;

function onStop() {
  const others = process.rawListeners("SIGTERM").filter((one) => one !== onStop);
  if (others.length === 0) exit.call(process, 143); // the default without listeners; forks inherit this file
  if (others.some((one) => !("listener" in one))) process.exit = (code) => code === 143 || exit.call(process, code);
}

process.prependListener("SIGTERM", onStop);
