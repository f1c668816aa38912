import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import {
  Blocks,
  Bot,
  CalendarClock,
  Camera,
  Cog,
  File,
  GitBranch,
  Globe,
  Lock,
  MessageSquare,
  MessagesSquare,
  MonitorSmartphone,
  type LucideIcon,
} from 'lucide-react';

import type { Kind } from '../../api/activitySearch';
import { agentsQuery } from '../../api/agents';
import type { ServerEvent } from '../../api/live';
import { Timestamp } from '../../components/Timestamp';
import * as activity from '../../i18n/activity';
import { useText } from '../../i18n/language';
import styles from './EventList.module.css';
import { isFailure, linkOf } from './links';

const ICONS: Record<Kind, LucideIcon> = {
  agent: Bot,
  operation: Cog,
  conversation: MessageSquare,
  task: CalendarClock,
  device: MonitorSmartphone,
  channel: MessagesSquare,
  file: File,
  snapshot: Camera,
  push: GitBranch,
  skill: Blocks,
  secret: Lock,
  domain: Globe,
};

interface Props {
  label: string;
  events: readonly ServerEvent[];
  /** Leaves out the agent's name, where all events are of one. */
  ofOneAgent?: boolean;
}

/** Events as a timeline, each with a link to its subject. */
export function EventList({ label, events, ofOneAgent = false }: Props) {
  const agents = useQuery(agentsQuery).data?.agents ?? [];
  const names = new Map(agents.map(({ agentId, name }) => [agentId, name]));
  return (
    <ol className={styles.list} aria-label={label}>
      {events.map((event) => (
        <EventRow key={event.id} event={event} agentName={ofOneAgent ? undefined : names.get(event.agentId ?? '')} />
      ))}
    </ol>
  );
}

function EventRow({ event, agentName }: { event: ServerEvent; agentName: string | undefined }) {
  const t = useText(activity);
  const { type, data, agentId } = event;
  const Icon = ICONS[type.split('.')[0] as Kind] ?? Cog;
  const target = linkOf(event);
  const words = t.events[type]?.(data) ?? type;
  const reason = data.reason ?? data.error;
  const by = event.actor && t.actors[event.actor.kind];
  return (
    <li className={styles.event}>
      <span className={`${styles.icon} ${isFailure(event) ? styles.danger : ''}`}>
        <Icon size={17} aria-hidden />
      </span>
      <div className={styles.words}>
        {target ? <Link {...target}>{words}</Link> : <strong>{words}</strong>}
        <div className={styles.facts}>
          {agentName !== undefined && agentId && !type.startsWith('agent.') && (
            <Link to="/agents/$id/overview" params={{ id: agentId }}>
              {agentName}
            </Link>
          )}
          {typeof reason === 'string' && (
            <span>
              {t.reason}: <span translate="no">{reason}</span>
            </span>
          )}
          {by && <span>{by(event.actor?.name ?? null)}</span>}
        </div>
      </div>
      <span className={styles.at}>
        <Timestamp at={event.at} />
      </span>
    </li>
  );
}
