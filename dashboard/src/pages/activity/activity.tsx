import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';

import { useActivity } from './useActivity';
import { KINDS, type Kind } from '../../api/activitySearch';
import { agentsQuery } from '../../api/agents';
import { Button } from '../../components/Button';
import { EmptyState } from '../../components/EmptyState';
import { Page, Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Fields, Note } from '../../components/Row';
import { Select } from '../../components/Select';
import * as activity from '../../i18n/activity';
import * as common from '../../i18n/common';
import { useText } from '../../i18n/language';
import { EventList } from './EventList';

const route = getRouteApi('/shell/activity');
const SHOWN_EVENTS = 1_000;

export function ActivityPage() {
  const t = { ...useText(common), ...useText(activity) };
  const filter = route.useSearch();
  const navigate = route.useNavigate();
  const { data: { agents } = { agents: [] }, isSuccess } = useQuery(agentsQuery);
  const missing = isSuccess && agents.every(({ agentId }) => agentId !== filter.agent) && filter.agent;
  const { query, events } = useActivity(filter);
  const isFiltered = filter.kind !== undefined || filter.agent !== undefined;
  const choose = (kind: Kind | '', agent: string) =>
    void navigate({ search: { ...(kind && { kind }), ...(agent && { agent }) }, replace: true });
  return (
    <Page title={t.title} lead={t.lead}>
      <Fields>
        <Select
          label={t.kind}
          choices={[{ id: '', label: t.anyKind }, ...KINDS.map((id) => ({ id, label: t.kinds[id] }))]}
          value={filter.kind ?? ''}
          onChange={(kind) => choose(kind, filter.agent ?? '')}
        />
        <Select
          label={t.agent}
          choices={[{ id: '', label: t.anyAgent }, ...agents.map(({ agentId, name }) => ({ id: agentId, label: name }))]}
          value={filter.agent ?? ''}
          onChange={(agent) => choose(filter.kind ?? '', agent)}
        />
      </Fields>
      <Loaded query={query}>
        {() =>
          events.length === 0 ? (
            <EmptyState
              title={isFiltered ? t.noMatch : t.empty}
              action={isFiltered && <Button onPress={() => choose('', '')}>{t.showAll}</Button>}
              command={isFiltered ? undefined : 'roost events -f'}
            >
              {missing ? t.noAgentText(missing) : isFiltered ? null : t.emptyText}
            </EmptyState>
          ) : (
            <Section title={t.list}>
              <EventList label={t.list} events={events} />
              {events.length >= SHOWN_EVENTS && <Note small>{t.cut}</Note>}
            </Section>
          )
        }
      </Loaded>
    </Page>
  );
}
