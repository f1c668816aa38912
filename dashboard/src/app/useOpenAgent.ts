import { useQuery } from '@tanstack/react-query';
import { useMatch } from '@tanstack/react-router';

import { agentQuery, type Agent } from '../api/agents';

/** Return the agent whose page is open, as soon as it is known. */
export function useOpenAgent(): Agent | undefined {
  const id = useMatch({ from: '/shell/agents/$id', shouldThrow: false })?.params.id;
  // The page that tells of a missing agent asks, too: asking again there would show the agent's page in between.
  const { data } = useQuery({ ...agentQuery(id ?? ''), enabled: id !== undefined, retryOnMount: false });
  return id === undefined ? undefined : data?.agent;
}
