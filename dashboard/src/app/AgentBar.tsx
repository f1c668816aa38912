import { useQuery } from '@tanstack/react-query';
import { Outlet, useMatch, useMatches, useNavigate } from '@tanstack/react-router';
import { ChevronsUpDown } from 'lucide-react';

import { agentQuery, agentsQuery } from '../api/agents';
import { ApiError } from '../api/errors';
import { Button } from '../components/Button';
import { Menu, MenuItem } from '../components/Menu';
import * as shell from '../i18n/shell';
import { useText } from '../i18n/language';
import { AgentStatus } from '../pages/agents/AgentStatus';
import { AgentNotFound } from './problems';
import styles from './Shell.module.css';
import { useOpenAgent } from './useOpenAgent';

/** Longer lists are searched, with the key that opens the search. */
const MENU_LENGTH = 30;

/** An unknown agent is 404, one of another tenant 401. */
const MISSING = new Set([401, 404]);

/** The open agent's name and state above each of its pages, and a menu that shows the same page of another. */
export function AgentBar() {
  const t = useText(shell);
  const agent = useOpenAgent();
  const { data: listed } = useQuery({ ...agentsQuery, enabled: agent !== undefined });
  const page = useMatches({ select: (matches) => matches.at(-1)?.fullPath });
  const navigate = useNavigate();
  if (!agent) return null;
  const others = listed?.agents.filter(({ agentId }) => agentId !== agent.agentId).slice(0, MENU_LENGTH) ?? [];
  const trigger = (
    <Button kind="quiet" iconOnly aria-label={t.switchAgent}>
      <ChevronsUpDown size={16} aria-hidden />
    </Button>
  );
  return (
    <div className={styles.agentBar} role="group" aria-label={t.openAgent}>
      <strong>{agent.name}</strong>
      <AgentStatus state={agent.status} />
      {others.length > 0 && (
        <Menu trigger={trigger} label={t.switchAgent}>
          {others.map(({ agentId, name }) => (
            <MenuItem
              key={agentId}
              onAction={() => void navigate({ to: page as '/agents/$id/overview', params: { id: agentId } })}
            >
              {name}
            </MenuItem>
          ))}
        </Menu>
      )}
    </div>
  );
}

/** Shows the open agent's page, or one page that says that there is no such agent. */
export function AgentPages() {
  const { id } = useMatch({ from: '/shell/agents/$id' }).params;
  const { error } = useQuery({ ...agentQuery(id), retryOnMount: false });
  return error instanceof ApiError && MISSING.has(error.status) ? <AgentNotFound id={id} /> : <Outlet />;
}
