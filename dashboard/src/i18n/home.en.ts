export const en = {
  title: 'Home',
  lead: (tenant: string) => `What runs for ${tenant} on this server`,
  startingText: 'The agent starts. It answers as soon as it runs.',
  downText: (name: string) => `${name} does not run.`,
  see: 'See why',
  agents: 'Agents',
  all: 'All agents',
  firstTitle: 'Create your first agent',
  firstText: 'An agent is an assistant that works in a container of its own, with files, tasks and an address.',
  create: 'Create an agent',
  model: 'Model',
  scripted:
    'No language model is connected. Agents use a stand-in that repeats what you say, so that everything around a model can be tried.',
  connect: 'Connect one when the server starts, for example:',
  connectKey: 'An agent can also use its own key: attach a secret such as ANTHROPIC_API_KEY or OPENAI_API_KEY to it.',
  giveModel: (name: string) => `Give ${name} a language model`,
  models: (count: number) => (count === 1 ? '1 model is connected:' : `${count} models are connected:`),
};
