type Data = Readonly<Record<string, unknown>>;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const states: Record<string, string> = {
  starting: 'starts',
  running: 'runs',
  not_running: 'is stopped',
  failed: 'has failed',
};
const work: Record<string, string> = {
  'agent.start': 'Start',
  'agent.delete': 'Deletion',
  'agent.update': 'Update of the engine',
  'agent.snapshot': 'Snapshot',
  'agent.reset': 'Reset to a snapshot',
  'agent.restore': 'Restoring a snapshot',
  'agent.commit': 'Saving the history of the files',
  'agent.skills': 'Delivery of skills',
  'agent.scripts': 'Script of the manifest',
  'agent.push': 'Git push',
  'git.push': 'Git push',
  'agent.import_tasks': 'Import of tasks',
  'vectors.vectorize': 'Indexing a file',
  'pins.retrieve': 'Fetching pinned content',
};
const progress: Record<string, string> = {
  pending: 'waits',
  paused: 'is paused',
  running: 'is running',
  done: 'is done',
  failed: 'has failed',
};
const answers: Record<string, string> = {
  answering: 'A message was sent to the agent',
  complete: 'The agent has answered',
  stopped: 'An answer was stopped',
  failed: 'An answer has failed',
};
const actions: Record<string, string> = {
  created: 'created',
  updated: 'changed',
  deleted: 'deleted',
  saved: 'saved',
  removed: 'removed',
  registered: 'added',
  attached: 'given to an agent',
  detached: 'taken from an agent',
  approved: 'approved',
  rejected: 'rejected',
};
const did = (action: unknown): string => actions[text(action)] ?? 'changed';

export const en = {
  title: 'Activity',
  lead: 'What changed in the last hour, and what changes now.',
  kind: 'Kind',
  anyKind: 'All',
  agent: 'Agent',
  anyAgent: 'All',
  work,
  kinds: {
    agent: 'Agents',
    operation: 'Background work',
    conversation: 'Conversations',
    task: 'Tasks',
    device: 'Devices',
    channel: 'Channels',
    file: 'Stored files',
    snapshot: 'Snapshots',
    push: 'Git pushes',
    skill: 'Skills',
    secret: 'Secrets',
    domain: 'Domains',
  },
  list: 'Changes, newest first',
  empty: 'Nothing has changed in the last hour',
  emptyText: 'Create an agent, upload a file or run a task: it appears here at once.',
  noMatch: 'Nothing of this kind in the last hour.',
  showAll: 'Show all',
  cut: 'Only the newest 1,000 changes are shown.',
  all: 'All activity of this agent',
  ofAgent: 'Activity',
  quiet: 'Nothing has changed in the last hour.',
  reason: 'Why',
  actors: {
    key: (name) => (name ? `by the key ${name}` : 'with an API key'),
    session: (name) => (name ? `in a browser, by the key ${name}` : 'in a browser'),
    token: () => "by the holder of the agent's token",
    agent: () => 'by the agent itself',
    signed_url: () => 'by a signed URL',
    server: () => 'by the server',
  } as Record<string, (name: string | null) => string>,
  events: {
    'agent.created': (data) => `Agent ${text(data.name)} was created`,
    'agent.changed': (data) =>
      data.action === 'routes_removed'
        ? `Routes of agent ${text(data.name)} to ports of Roost were removed: ${text(data.routes)}`
        : `Agent ${text(data.name)} ${states[text(data.state)] ?? 'was changed'}`,
    'agent.deleted': () => 'An agent was deleted',
    'operation.changed': (data) =>
      `${work[text(data.kind)] ?? text(data.kind)} ${progress[text(data.state)] ?? 'was changed'}`,
    'task.changed': (data) => `Task ${text(data.name)} was ${did(data.action)}`,
    'task.run': () => 'A task was run',
    'device.changed': (data) => `A device was ${did(data.action)}`,
    'channel.changed': (data) => `A channel was ${did(data.action)}`,
    'conversation.changed': (data) => answers[text(data.state)] ?? 'A conversation was changed',
    'file.added': (data) => `File ${text(data.name)} was stored`,
    'file.updated': (data) => `File ${text(data.name)} was changed`,
    'file.deleted': (data) => `File ${text(data.name)} was deleted`,
    'snapshot.created': () => 'A snapshot was taken',
    'snapshot.failed': () => 'The files of an agent could not be saved',
    'push.failed': () => 'A Git push was undone',
    'skill.changed': (data) => `Skill ${text(data.name)} was ${did(data.action)}`,
    'secret.changed': (data) => `Secret ${text(data.name)} was ${did(data.action)}`,
    'domain.changed': (data) => `Domain ${text(data.name)} was ${did(data.action)}`,
  } as Record<string, (data: Data) => string>,
};
