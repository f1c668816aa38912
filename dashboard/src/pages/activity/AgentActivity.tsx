import { Link } from '@tanstack/react-router';

import { useActivity } from './useActivity';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note } from '../../components/Row';
import * as activity from '../../i18n/activity';
import { useText } from '../../i18n/language';
import { EventList } from './EventList';

const SHOWN_EVENTS = 5;

/** The newest changes of one agent, for its overview. */
export function AgentActivity({ agentId }: { agentId: string }) {
  const t = useText(activity);
  const { query, events } = useActivity({ agent: agentId });
  return (
    <Section
      title={t.ofAgent}
      actions={
        <Link to="/activity" search={{ agent: agentId }}>
          {t.all}
        </Link>
      }
    >
      <Loaded query={query}>
        {() =>
          events.length === 0 ? (
            <Note>{t.quiet}</Note>
          ) : (
            <EventList label={t.ofAgent} events={events.slice(0, SHOWN_EVENTS)} ofOneAgent />
          )
        }
      </Loaded>
    </Section>
  );
}
