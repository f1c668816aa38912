import { useQuery } from '@tanstack/react-query';
import { Outlet, useMatch } from '@tanstack/react-router';

import { agentQuery } from '../api/agents';
import { ApiError } from '../api/errors';
import { AgentNotFound } from './problems';

/** An unknown agent is 404, one of another tenant 401. */
const MISSING = new Set([401, 404]);

/** Shows the open agent's page, or one page that says that there is no such agent. */
export function AgentPages() {
  const { id } = useMatch({ from: '/shell/agents/$id' }).params;
  // The key keeps what is typed for one agent from the page of another.
  const { error } = useQuery({ ...agentQuery(id), retryOnMount: false });
  return error instanceof ApiError && MISSING.has(error.status) ? <AgentNotFound id={id} /> : <Outlet key={id} />;
}
