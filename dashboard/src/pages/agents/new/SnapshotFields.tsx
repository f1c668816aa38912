import { useInfiniteQuery } from '@tanstack/react-query';

import type { AgentSummary } from '../../../api/agents';
import { snapshotsQuery } from '../../../api/snapshots';
import { Button } from '../../../components/Button';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { Select } from '../../../components/Select';
import * as agents from '../../../i18n/agents';
import { useLanguage, useText } from '../../../i18n/language';
import * as snapshots from '../../../i18n/snapshots';
import { BY_CID } from './creation';

interface Props {
  all: readonly AgentSummary[];
  origin: string;
  snapshot: string;
  error: string | undefined;
  onChange: (origin: string, snapshot: string) => void;
}

/** The snapshot that a new agent begins with: an agent and one of its snapshots, or a CID. */
export function SnapshotFields({ all, origin, snapshot, error, onChange }: Props) {
  const t = useText(agents);
  const choices = [...all.map(({ agentId, name }) => ({ id: agentId, label: name })), { id: BY_CID, label: t.byCid }];
  return (
    <>
      <Select
        label={t.originAgent}
        hint={t.originHint}
        choices={choices}
        value={origin}
        onChange={(chosen) => onChange(chosen, '')}
      />
      {origin === BY_CID ? (
        <TextField
          label={t.cid}
          hint={t.cidHint}
          value={snapshot}
          onChange={(cid) => onChange(origin, cid)}
          error={error}
          autoComplete="off"
          monospace
        />
      ) : (
        <SnapshotSelect agentId={origin} value={snapshot} onChange={(cid) => onChange(origin, cid)} />
      )}
    </>
  );
}

interface SelectProps {
  agentId: string;
  value: string;
  onChange: (cid: string) => void;
}

function SnapshotSelect({ agentId, value, onChange }: SelectProps) {
  const t = useText(agents);
  const s = useText(snapshots);
  const { language } = useLanguage();
  const query = useInfiniteQuery(snapshotsQuery(agentId));
  const found = new Map(query.data?.pages.flatMap((page) => page.snapshots).map((one) => [one.snapshotCid, one]));
  const time = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });
  const choices = [
    { id: '', label: t.presentWorkspace, description: t.presentWorkspaceHint },
    ...[...found.values()].map(({ snapshotCid, label, changeSummary, createdAt, trigger }) => ({
      id: snapshotCid,
      label: label ?? changeSummary,
      description: `${time.format(new Date(createdAt))}, ${s.triggers[trigger]}`,
    })),
  ];
  return (
    <>
      <Select label={t.snapshot} choices={choices} value={value} onChange={onChange} />
      {query.error && <ErrorPanel error={query.error} onRetry={query.refetch} />}
      {query.hasNextPage && (
        <div>
          <Button onPress={() => void query.fetchNextPage()} isDisabled={query.isFetchingNextPage}>
            {s.more}
          </Button>
        </div>
      )}
    </>
  );
}
