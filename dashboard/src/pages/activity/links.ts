import type { LinkProps } from '@tanstack/react-router';

import type { ServerEvent } from '../../api/live';

type Target = Pick<LinkProps, 'to' | 'params' | 'search'>;

/** Return the page that shows the subject of an event; null if it is gone or has none. */
export function linkOf({ type, subject, agentId, data }: ServerEvent): Target | null {
  const agent = agentId === null ? null : { params: { id: agentId } };
  switch (type.split('.')[0]) {
    case 'agent':
      return type === 'agent.deleted' ? null : { to: '/agents/$id/overview', params: { id: subject.id } };
    case 'file':
      return { to: '/storage/files', ...(data.network === 'public' && { search: { network: 'public' as const } }) };
    case 'skill':
      return agent ? { to: '/agents/$id/skills', ...agent } : { to: '/skills' };
    case 'secret':
      return agent ? { to: '/agents/$id/secrets', ...agent } : { to: '/secrets' };
    case 'domain':
      return agent ? { to: '/agents/$id/routes', ...agent } : { to: '/storage/gateways' };
    case 'task':
      return agent && { to: '/agents/$id/tasks', ...agent };
    case 'device':
      return agent && { to: '/agents/$id/devices', ...agent };
    case 'conversation':
      return agent && { to: '/agents/$id/chat', ...agent };
    case 'channel':
      return agent && { to: '/agents/$id/channels', ...agent };
    case 'snapshot':
    case 'push':
      return agent && { to: '/agents/$id/snapshots', ...agent };
    default:
      return agent && { to: '/agents/$id/overview', ...agent };
  }
}

/** Return whether the state of an event is a failure. */
export const isFailure = ({ data }: ServerEvent): boolean => data.state === 'failed';
