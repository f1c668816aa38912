import { useQuery } from '@tanstack/react-query';
import { useMatch } from '@tanstack/react-router';

import { agentQuery, type Agent } from '../api/agents';

/** Return the agent whose page is open, as soon as it is known. */
export function useOpenAgent(): Agent | undefined {
  const id = useMatch({ from: '/shell/agents/$id', shouldThrow: false })?.params.id;
  const { data } = useQuery({ ...agentQuery(id ?? ''), enabled: id !== undefined });
  return id === undefined ? undefined : data?.agent;
}
