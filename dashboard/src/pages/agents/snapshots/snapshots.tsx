import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Camera } from 'lucide-react';
import { useState } from 'react';

import { comparisonQuery, labelSnapshot, restoreSnapshot, snapshotsQuery, takeSnapshot, type Snapshot } from '../../../api/snapshots';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { CodeBlock } from '../../../components/CodeBlock';
import { ConfirmDialog } from '../../../components/ConfirmDialog';
import { Dialog } from '../../../components/Dialog';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { FormDialog } from '../../../components/FormDialog';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { LoadMore } from '../../../components/LoadMore';
import { Page } from '../../../components/Page';
import { StatusBadge, type Tone } from '../../../components/StatusBadge';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import { useText } from '../../../i18n/language';
import * as snapshots from '../../../i18n/snapshots';

const route = getRouteApi('/shell/agents/$id/snapshots');
const TONES: Record<'added' | 'deleted' | 'changed', Tone> = { added: 'ok', deleted: 'danger', changed: 'warn' };

export function AgentSnapshotsPage() {
  const { id } = route.useParams();
  const t = useText(snapshots);
  const may = useMay();
  const query = useInfiniteQuery(snapshotsQuery(id));
  const take = useMutation({
    mutationFn: () => takeSnapshot(id),
    onSuccess: ({ changeSummary }) => showToast(t.taken(changeSummary)),
  });
  const all = query.data?.pages.flatMap((page) => page.snapshots) ?? [];
  const action = may('editor') && (
    <Button kind="primary" onPress={() => take.mutate()} isDisabled={take.isPending}>
      <Camera size={17} aria-hidden /> {take.isPending ? t.taking : t.take}
    </Button>
  );
  return (
    <Page title={t.title} lead={t.lead} actions={all.length > 0 && action}>
      {take.error && <ErrorPanel error={take.error} />}
      <Loaded query={query}>
        {() =>
          all.length === 0 ? (
            <EmptyState title={t.emptyTitle} action={action}>
              {t.emptyText}
            </EmptyState>
          ) : (
            <ItemList label={t.title}>
              {all.map((snapshot, index) => (
                <SnapshotItem key={snapshot.snapshotId} agentId={id} snapshot={snapshot} latest={all[0]!} isLatest={index === 0} />
              ))}
            </ItemList>
          )
        }
      </Loaded>
      <LoadMore query={query} label={t.more} />
    </Page>
  );
}

interface ItemProps {
  agentId: string;
  snapshot: Snapshot;
  latest: Snapshot;
  isLatest: boolean;
}

function SnapshotItem({ agentId, snapshot, latest, isLatest }: ItemProps) {
  const t = useText(snapshots);
  const may = useMay();
  const [open, setOpen] = useState<'label' | 'compare' | 'restore' | null>(null);
  const close = () => setOpen(null);
  const restore = useMutation({ mutationFn: () => restoreSnapshot(agentId, snapshot), onSuccess: () => showToast(t.restored) });
  const facts = (
    <>
      <Timestamp at={snapshot.createdAt} />
      <span>{t.triggers[snapshot.trigger]}</span>
      <span>{t.files(snapshot.files)}</span>
      {snapshot.skippedCount > 0 && <span>{t.skipped(snapshot.skippedCount)}</span>}
      {snapshot.label && <span>{snapshot.changeSummary}</span>}
    </>
  );
  const actions = (
    <>
      {!isLatest && <Button onPress={() => setOpen('compare')}>{t.compare}</Button>}
      {may('editor') && (
        <>
          <Button onPress={() => setOpen('label')}>{t.label}</Button>
          <Button onPress={() => setOpen('restore')}>{t.restore}</Button>
        </>
      )}
    </>
  );
  return (
    <Item
      title={nameOf(snapshot)}
      badge={isLatest && <StatusBadge tone="ok">{t.latest}</StatusBadge>}
      facts={facts}
      actions={actions}
    >
      {open === 'label' && <LabelForm agentId={agentId} snapshot={snapshot} onClose={close} />}
      {open === 'compare' && <Comparison agentId={agentId} from={snapshot} to={latest} onClose={close} />}
      <ConfirmDialog
        title={t.restoreTitle}
        action={t.restore}
        isOpen={open === 'restore'}
        onClose={close}
        onConfirm={() => restore.mutateAsync()}
      >
        <p>
          <strong>{nameOf(snapshot)}</strong>, <Timestamp at={snapshot.createdAt} />
        </p>
        <p>{t.restoreText}</p>
      </ConfirmDialog>
    </Item>
  );
}

const nameOf = ({ label, changeSummary }: Snapshot): string => label ?? changeSummary;

function LabelForm({ agentId, snapshot, onClose }: { agentId: string; snapshot: Snapshot; onClose: () => void }) {
  const t = useText(snapshots);
  const [label, setLabel] = useState(snapshot.label ?? '');
  const save = useMutation({
    mutationFn: () => labelSnapshot(agentId, snapshot.snapshotCid, label.trim() || null),
    onSuccess: () => showToast(t.labelled),
  });
  return (
    <FormDialog title={t.label} action={t.label} onClose={onClose} onSubmit={save.mutateAsync}>
      <TextField label={t.label} hint={t.labelHint} value={label} onChange={setLabel} autoComplete="off" autoFocus />
    </FormDialog>
  );
}

interface ComparisonProps {
  agentId: string;
  from: Snapshot;
  to: Snapshot;
  onClose: () => void;
}

function Comparison({ agentId, from, to, onClose }: ComparisonProps) {
  const t = useText(snapshots);
  const [path, setPath] = useState<string | null>(null);
  const query = useQuery(comparisonQuery(agentId, from.snapshotCid, to.snapshotCid));
  return (
    <Dialog title={t.compareTitle(nameOf(from))} isOpen onClose={onClose}>
      <Loaded query={query}>
        {({ changes, truncated }) =>
          changes.length === 0 ? (
            <p>{t.same}</p>
          ) : (
            <>
              <p>{t.compareText}</p>
              <ItemList label={t.compareTitle(nameOf(from))}>
                {changes.map((change) => (
                  <Item
                    key={change.path}
                    title={
                      <Button kind="quiet" onPress={() => setPath(path === change.path ? null : change.path)}>
                        {change.path}
                      </Button>
                    }
                    badge={<StatusBadge tone={TONES[change.change]}>{t.changes[change.change]}</StatusBadge>}
                  >
                    {path === change.path && <FileDiff agentId={agentId} from={from.snapshotCid} to={to.snapshotCid} path={path} />}
                  </Item>
                ))}
              </ItemList>
              {truncated && <p>{t.cut}</p>}
            </>
          )
        }
      </Loaded>
    </Dialog>
  );
}

function FileDiff({ agentId, from, to, path }: { agentId: string; from: string; to: string; path: string }) {
  const t = useText(snapshots);
  const query = useQuery(comparisonQuery(agentId, from, to, path));
  return <Loaded query={query}>{({ diff }) => (diff ? <CodeBlock code={diff} label={path} /> : <p>{t.noLines}</p>)}</Loaded>;
}
