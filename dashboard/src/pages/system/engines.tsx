import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';

import { engineStatesQuery, updateAgent, type InstalledEngine } from '../../api/system';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { EmptyState } from '../../components/EmptyState';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Facts } from '../../components/Facts';
import { Item, ItemList } from '../../components/ItemList';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as system from '../../i18n/system';

const SHOWN_RELEASES = 5;

/** The installed engines, and the agents that have an older release. */
export function EngineSection() {
  const t = useText(system);
  const query = useQuery(engineStatesQuery);
  return (
    <Section title={t.engines}>
      <Loaded query={query}>
        {({ engines }) =>
          engines.length === 0 ? (
            <EmptyState title={t.noEngine} command="roost engines install">
              {t.noEngineText}
            </EmptyState>
          ) : (
            engines.map((engine) => <EngineView key={engine.engine} engine={engine} />)
          )
        }
      </Loaded>
    </Section>
  );
}

function EngineView({ engine }: { engine: InstalledEngine }) {
  const t = useText(system);
  const { outdatedAgents } = engine;
  return (
    <>
      <h3 translate="no">{engine.engine}</h3>
      <Facts
        entries={[
          [t.installed, engine.installedVersions.join(', ')],
          [t.newest, engine.latestVersion ?? t.unknown],
          [t.available, engine.availableVersions.slice(0, SHOWN_RELEASES).join(', ') || null],
        ]}
      />
      {outdatedAgents.length === 0 ? (
        engine.latestVersion && <Note>{t.upToDate}</Note>
      ) : (
        <>
          <p>
            <StatusBadge tone="warn">{t.behind(outdatedAgents.length)}</StatusBadge>
          </p>
          <ItemList label={t.behindLabel(engine.engine)}>
            {outdatedAgents.map((agent) => (
              <OutdatedAgent key={agent.agentId} agent={agent} />
            ))}
          </ItemList>
        </>
      )}
    </>
  );
}

function OutdatedAgent({ agent }: { agent: InstalledEngine['outdatedAgents'][number] }) {
  const t = useText(system);
  const update = useMutation({
    mutationFn: () => updateAgent(agent.agentId),
    onSuccess: ({ success, newVersion }) => success && showToast(t.updated(agent.name, newVersion)),
  });
  return (
    <Item
      title={
        <Link to="/agents/$id/overview" params={{ id: agent.agentId }}>
          {agent.name}
        </Link>
      }
      facts={agent.agentVersion}
      actions={
        <Button aria-label={t.updateAgent(agent.name)} isDisabled={update.isPending} onPress={() => update.mutate()}>
          {update.isPending ? t.updating : t.update}
        </Button>
      }
    >
      {update.error && <ErrorPanel error={update.error} />}
      {update.data && !update.data.success && <CodeBlock code={update.data.output} label={t.output} />}
    </Item>
  );
}
