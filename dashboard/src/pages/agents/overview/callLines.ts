import { shellQuoted } from '../new/creation';

/** Return what docs/guides/agent-address.md has for an address, by language. Many resolvers know no name below `localhost`. */
export function callLines(address: string): Readonly<Record<string, string>> {
  const { origin, protocol, host, hostname, port } = new URL(address);
  const isLocal = hostname.endsWith('.localhost');
  const base = JSON.stringify(`${origin}/v1`); // a string in both languages, whatever a host contains
  const direct = isLocal ? JSON.stringify(`${protocol}//localhost${port && `:${port}`}/v1`) : base;
  const curl = `curl ${shellQuoted(`${origin}/v1/chat/completions`)} -H "Authorization: Bearer $GATEWAY_TOKEN" \\
  -H 'Content-Type: application/json' -d '{"messages": [{"role": "user", "content": "Hello"}]}'`;
  const Python = `import os
from openai import OpenAI

agent = OpenAI(
    base_url=${direct},
    api_key=os.environ["GATEWAY_TOKEN"],${isLocal ? `\n    default_headers={"Host": ${JSON.stringify(host)}},` : ''}
)
model = agent.models.list().data[0].id
answer = agent.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}])
print(answer.choices[0].message.content)`;
  const resolve = `import dns from "node:dns";
const resolver: any = dns, lookup: any = dns.lookup;
resolver.lookup = (name: string, ...rest: any[]) => lookup(name.endsWith(".localhost") ? "localhost" : name, ...rest);
`;
  const TypeScript = `import OpenAI from "openai";
${isLocal ? resolve : ''}
const agent = new OpenAI({ baseURL: ${base}, apiKey: process.env.GATEWAY_TOKEN });
const model = (await agent.models.list()).data[0].id;
const answer = await agent.chat.completions.create({ model, messages: [{ role: "user", content: "Hello" }] });
console.log(answer.choices[0].message.content);`;
  return { curl, Python, TypeScript };
}
