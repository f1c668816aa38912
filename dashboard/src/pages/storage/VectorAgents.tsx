import { useMutation, useQuery } from '@tanstack/react-query';

import { agentsQuery } from '../../api/agents';
import { grantGroup, groupAgentsQuery } from '../../api/vectors';
import { useMay } from '../../app/useSession';
import { Checkbox } from '../../components/Checkbox';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note } from '../../components/Row';
import { useText } from '../../i18n/language';
import * as vectors from '../../i18n/vectors';

/** The agents; those that are ticked may search the group. */
export function VectorAgents({ groupId }: { groupId: string }) {
  const t = useText(vectors);
  const may = useMay();
  const agents = useQuery(agentsQuery);
  const query = useQuery(groupAgentsQuery(groupId));
  const change = useMutation({
    mutationFn: ({ agentId, isAllowed }: { agentId: string; isAllowed: boolean }) =>
      grantGroup(groupId, agentId, isAllowed),
  });
  return (
    <Section title={t.agents}>
      <Loaded query={query}>
        {({ agents: allowed }) =>
          agents.data?.agents.map(({ agentId, name }) => (
            <Checkbox
              key={agentId}
              isSelected={
                change.isPending && change.variables.agentId === agentId
                  ? change.variables.isAllowed
                  : allowed.some((one) => one.agent_id === agentId)
              }
              isDisabled={!may('editor') || change.isPending}
              onChange={(isAllowed) => change.mutate({ agentId, isAllowed })}
            >
              {name}
            </Checkbox>
          ))
        }
      </Loaded>
      {agents.data?.agents.length === 0 && <Note>{t.noAgents}</Note>}
      {change.error && <ErrorPanel error={change.error} />}
    </Section>
  );
}
