// Loaded into the gateway's process before the engine. The proxy that the engine sets up for itself ends the process at
// SIGTERM, with 143, while its gateway still closes: that stop then counts as a crash, and after three of them in five
// minutes the engine leaves its channels out. Where a gateway listens to the signal, it is the one that ends the process.
const { exit } = process;

function onStop() {
  const others = process.rawListeners("SIGTERM").filter((one) => one !== onStop);
  if (others.length === 0) exit.call(process, 143); // as a process without listeners would; forks inherit this file
  if (others.some((one) => !("listener" in one))) process.exit = (code) => code === 143 || exit.call(process, code);
}

process.prependListener("SIGTERM", onStop);
