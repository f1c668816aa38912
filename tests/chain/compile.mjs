// Print the bytecode of Token.sol as it lies on a chain.
import { readFileSync } from "node:fs";
import solc from "solc";

const input = {
  language: "Solidity",
  sources: { "Token.sol": { content: readFileSync(process.env.SOURCE, "utf8") } },
  settings: { optimizer: { enabled: true }, outputSelection: { "*": { Token: ["evm.deployedBytecode.object"] } } },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
const errors = (output.errors ?? []).filter((one) => one.severity === "error");
if (errors.length > 0) throw new Error(errors.map((one) => one.formattedMessage).join("\n"));
process.stdout.write(output.contracts["Token.sol"].Token.evm.deployedBytecode.object);
