import { useQuery } from '@tanstack/react-query';
import { useMatch, useMatches, useNavigate } from '@tanstack/react-router';
import { ChevronsUpDown } from 'lucide-react';

import { agentsQuery } from '../api/agents';
import { Button } from '../components/Button';
import { Menu, MenuItem } from '../components/Menu';
import { useText } from '../i18n/language';
import * as shell from '../i18n/shell';
import { AgentStatus } from '../pages/agents/AgentStatus';
import styles from './AgentBar.module.css';
import { AGENT_PAGES } from './navigation';
import { useOpenAgent } from './useOpenAgent';

/** Says above each page of an agent which agent it is of, and leads to the same page of another one. */
export function AgentBar() {
  const t = useText(shell);
  const navigate = useNavigate();
  const id = useMatch({ from: '/shell/agents/$id', shouldThrow: false })?.params.id;
  const shown = useMatches({ select: (matches) => matches.at(-1)?.fullPath });
  const agent = useOpenAgent();
  const agents = useQuery({ ...agentsQuery, enabled: id !== undefined }).data?.agents;
  const others = agents?.filter(({ agentId }) => agentId !== id) ?? [];
  const page = AGENT_PAGES.find(({ to }) => to === shown)?.to ?? '/agents/$id/overview';
  const saysItself = page === '/agents/$id/overview'; // its heading and its first section do
  if (id === undefined || (saysItself && others.length === 0)) return null;
  const trigger = (
    <Button kind="quiet">
      {t.otherAgents} <ChevronsUpDown size={15} aria-hidden />
    </Button>
  );
  return (
    <div className={styles.bar} role="group" aria-label={t.openAgent}>
      {agent && !saysItself && (
        <>
          <strong className={styles.name}>{`${agent.emoji ?? ''} ${agent.name}`.trim()}</strong>
          <AgentStatus state={agent.status} />
        </>
      )}
      {others.length > 0 && (
        <div className={styles.switch}>
          <Menu trigger={trigger} label={t.otherAgents}>
            {others.map(({ agentId, emoji, name, status }) => (
              <MenuItem
                key={agentId}
                id={agentId}
                textValue={name}
                onAction={() => void navigate({ to: page, params: { id: agentId } })}
              >
                <span className={styles.name}>{`${emoji ?? ''} ${name}`.trim()}</span>
                <AgentStatus state={status} />
              </MenuItem>
            ))}
          </Menu>
        </div>
      )}
    </div>
  );
}
