import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { agentsQuery } from '../../api/agents';
import { countLoaded } from '../../api/storage';
import { grantGroup, groupAgentsQuery, vectorFilesQuery } from '../../api/vectors';
import { useMay } from '../../app/useSession';
import { Checkbox } from '../../components/Checkbox';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note } from '../../components/Row';
import { useText } from '../../i18n/language';
import * as reach from '../../i18n/reach';
import * as vectors from '../../i18n/vectors';

/** The agents; those that are ticked may search the group. */
export function VectorAgents({ groupId }: { groupId: string }) {
  const t = useText(vectors);
  const r = useText(reach);
  const may = useMay();
  const [asked, setAsked] = useState<{ agentId: string; name: string; isAllowed: boolean } | null>(null);
  const files = countLoaded(useInfiniteQuery(vectorFilesQuery(groupId)));
  const agents = useQuery(agentsQuery);
  const query = useQuery(groupAgentsQuery(groupId));
  const change = useMutation({
    mutationFn: ({ agentId, isAllowed }: { agentId: string; isAllowed: boolean }) => grantGroup(groupId, agentId, isAllowed),
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
              onChange={(isAllowed) => setAsked({ agentId, name, isAllowed })}
            >
              {name}
            </Checkbox>
          ))
        }
      </Loaded>
      {agents.data?.agents.length === 0 && <Note>{t.noAgents}</Note>}
      {asked && (
        <ConfirmDialog
          title={r.askFor(asked.isAllowed ? t.allow : t.refuse, asked.name)}
          action={asked.isAllowed ? t.allow : t.refuse}
          isOpen
          onClose={() => setAsked(null)}
          onConfirm={() => change.mutateAsync(asked)}
        >
          {(asked.isAllowed ? r.groupGranted : r.groupRevoked)(asked.name, files)}
        </ConfirmDialog>
      )}
    </Section>
  );
}
