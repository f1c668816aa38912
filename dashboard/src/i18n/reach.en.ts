const people = (count: number) => (count === 1 ? '1 person' : `${count} people`);

/** What a change of who can reach what means, and for whom. */
export const en = {
  gatewayCloses: (files: number | undefined) =>
    `The gateway stops serving everyone: ${files === 1 ? '1 file that anybody can read here now needs' : `${files ?? 'the'} files that anybody can read here now need`} an allowed token, address or host.`,
  gatewayOpens: (files: number | undefined) =>
    `Nothing else restricts this gateway: ${files === 1 ? '1 public file of yours can' : `${files ?? 'the'} public files of yours can`} then be read here by anybody, and content of others no longer.`,
  controlRemoved: (left: number) =>
    `Who uses it no longer gets in. ${left === 1 ? '1 other entry stays' : `${left} other entries stay`}.`,
  gatewayDomain: (files: number | undefined, gateway: string) =>
    `Links through this domain stop working. ${files === 1 ? '1 public file stays' : `${files ?? 'Your'} public files stay`} at ${gateway}.`,
  opens: (paths: readonly string[]) =>
    `Anybody can then reach ${paths.length === 1 ? '1 path' : `${paths.length} paths`} without a token: ${paths.join(', ')}`,
  closes: (paths: readonly string[]) =>
    `Visitors then need the gateway token for ${paths.length === 1 ? '1 path' : `${paths.length} paths`} that anybody can reach now: ${paths.join(', ')}`,
  ends: (paths: readonly string[]) =>
    `${paths.length === 1 ? '1 path no longer leads' : `${paths.length} paths no longer lead`} to a program: ${paths.join(', ')}`,
  domainOpens: (port: number) => `Anybody can then use the program on port ${port} through this domain, without a token.`,
  domainCloses: 'Anybody can use this domain now. Visitors then need the gateway token.',
  groupGranted: (agent: string, files: string) =>
    `${agent}, and who talks to it, can then search and quote the ${files} files of this group.`,
  groupRevoked: (agent: string, files: string) => `${agent} can then no longer search the ${files} files of this group.`,
  groupDeleted: (agents: number) =>
    agents === 1 ? '1 agent can no longer search them.' : `${agents} agents can no longer search them.`,
  sells: (files: number) => `Anybody who pays can then read ${files === 1 ? '1 private file' : `${files} private files`}.`,
  unsold: 'No one can buy this 1 file with this instruction any more.',
  priceChanges: (files: string) => `Who reads the ${files} files for sale then pays by these terms.`,
  channelOpens: (bot: string) => `Anybody who finds ${bot} can then use the agent, and what it may use.`,
  channelBecomes: (before: string, after: string) => `Now these may write: ${before}. Then these: ${after}`,
  channelDrops: (count: number) => `${people(count)} can then no longer write to the agent.`,
  channelAdds: (count: number) => `${people(count)} more can then write to the agent without approval.`,
  channelOff: (who: string) => `The bot then answers no one. Now these may write: ${who}`,
  channelOn: (who: string) => `The bot then answers again. These may write: ${who}`,
  personApproved: (who: string) => `1 person, ${who}, can then use the agent, and what it may use.`,
  devices: (count: number) =>
    count === 1
      ? '1 device can then control the agent with a key of its own.'
      : `${count} devices can then control the agent, each with a key of its own.`,
  secret: (name: string, others: number) =>
    `The agent, and who can use it, can then use ${name}. ${others === 1 ? '1 other agent has it' : `${others} other agents have it`} now.`,
  askFor: (action: string, name: string) => `${action}: ${name}`,
};
