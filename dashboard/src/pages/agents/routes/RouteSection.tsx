import { useMutation } from '@tanstack/react-query';
import { ExternalLink, Plus, X } from 'lucide-react';
import { useState } from 'react';

import {
  compareRoutes,
  findRefusedField,
  parsePort,
  replaceRoutes,
  restoreRoutes,
  toRows,
  type Route,
  type RouteRow,
} from '../../../api/addresses';
import { ApiError } from '../../../api/errors';
import { useMay } from '../../../app/useSession';
import { useUndo } from '../../../app/useUndo';
import { Button, buttonClass } from '../../../components/Button';
import { ConfirmDialog } from '../../../components/ConfirmDialog';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { LeaveGuard } from '../../../components/LeaveGuard';
import { Section } from '../../../components/Page';
import { Note } from '../../../components/Row';
import { Select } from '../../../components/Select';
import { StatusBadge } from '../../../components/StatusBadge';
import { Table, type Column } from '../../../components/Table';
import * as addresses from '../../../i18n/addresses';
import * as drafts from '../../../i18n/drafts';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';
import styles from './routes.module.css';

interface Props {
  agentId: string;
  agentUrl: string;
  routes: readonly Route[];
}

/** The routes of an agent, as rows that are saved together. */
export function RouteSection(props: Props) {
  const t = useText(addresses);
  const may = useMay();
  return (
    <Section title={t.routes}>
      <Note>{t.routesText}</Note>
      {props.routes.some((route) => !route.protected) && <Note>{t.openText}</Note>}
      {may('editor') ? <RouteEditor {...props} /> : <RouteTable {...props} />}
    </Section>
  );
}

function RouteTable({ agentUrl, routes }: Props) {
  const t = useText(addresses);
  const columns: Column<Route>[] = [
    {
      id: 'path',
      title: t.path,
      cell: ({ pathPrefix }) => (
        <a href={agentUrl + pathPrefix} target="_blank" rel="noreferrer">
          {pathPrefix}
        </a>
      ),
    },
    { id: 'port', title: t.port, cell: ({ port }) => port },
    { id: 'access', title: t.access, cell: (route) => (route.protected ? t.token : t.everyone) },
  ];
  if (routes.length === 0) return <p>{t.noRoutes}</p>;
  return <Table label={t.routes} columns={columns} rows={routes} rowKey={({ pathPrefix }) => pathPrefix} />;
}

/** The rows as they are edited, and their saving; `isOutdated` tells that others changed the stored ones meanwhile. */
function useRouteDraft(agentId: string, routes: readonly Route[]) {
  const t = useText(addresses);
  const undo = useUndo();
  const stored = JSON.stringify(routes);
  const [draft, setDraft] = useState<{ rows: readonly RouteRow[]; of: string } | null>(null);
  const save = useMutation({
    mutationFn: async (rows: readonly RouteRow[]) => ({ before: routes, changed: (await replaceRoutes(agentId, rows)).mappings }),
    onSuccess: ({ before, changed }) => {
      setDraft(null);
      undo(t.saved, async () => {
        if (!(await restoreRoutes(agentId, changed, before))) throw new Error(texts.conflict);
      });
    },
  });
  const texts = useText(drafts);
  const isOutdated = draft !== null && draft.of !== stored;
  const rows = draft?.rows ?? toRows(routes);
  const change = (next: readonly RouteRow[]) => {
    setDraft({ rows: next, of: draft?.of ?? stored });
    save.reset();
  };
  return {
    rows,
    save,
    change,
    isOutdated,
    isChanged: draft !== null,
    keepMine: () => setDraft({ rows, of: stored }),
    discard: () => {
      setDraft(null);
      save.reset();
    },
  };
}

function RouteEditor({ agentId, agentUrl, routes }: Props) {
  const t = useText(addresses);
  const r = useText(reach);
  const { rows, save, change, isOutdated, isChanged, keepMine, discard } = useRouteDraft(agentId, routes);
  const [isAsking, setAsking] = useState(false);
  const reached = compareRoutes(routes, rows);
  const questions = (['opens', 'closes', 'ends'] as const).filter((kind) => reached[kind].length > 0);
  const refused = save.error instanceof ApiError ? findRefusedField(save.error.field) : null;
  const problemOf = (row: number, field: 'path' | 'port') =>
    refused?.row === row && refused.field === field ? save.error?.message : undefined;
  return (
    <>
      <LeaveGuard isChanged={isChanged && !save.isPending} />
      {rows.length === 0 && <p>{t.noRoutes}</p>}
      <ul className={styles.rows} aria-label={t.routes}>
        {rows.map((row, index) => (
          <RowFields
            key={index}
            row={row}
            address={isChanged ? null : agentUrl + row.path}
            pathProblem={problemOf(index, 'path')}
            portProblem={problemOf(index, 'port')}
            onChange={(next) => change(rows.map((one, at) => (at === index ? next : one)))}
            onRemove={() => change(rows.filter((_, at) => at !== index))}
          />
        ))}
      </ul>
      {save.error && !refused && <ErrorPanel error={save.error} />}
      {isOutdated && <OutdatedNote onKeepMine={keepMine} />}
      <div className={styles.bar}>
        <Button onPress={() => change([...rows, { path: '/', port: '', isProtected: true }])}>
          <Plus size={16} aria-hidden /> {t.addRoute}
        </Button>
        {isChanged && (
          <>
            <Button
              kind="primary"
              onPress={() => (questions.length > 0 ? setAsking(true) : save.mutate(rows))}
              isDisabled={save.isPending || isOutdated || !rows.every(isComplete)}
            >
              {save.isPending ? t.saving : t.save}
            </Button>
            <Button onPress={discard}>{t.discard}</Button>
            <StatusBadge tone="warn">{t.unsaved}</StatusBadge>
          </>
        )}
      </div>
      <ConfirmDialog
        title={t.saveRoutes}
        action={t.save}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={() => save.mutateAsync(rows).catch(() => undefined) /* shown at its row */}
      >
        {questions.map((kind) => (
          <p key={kind}>{r[kind](reached[kind])}</p>
        ))}
      </ConfirmDialog>
    </>
  );
}

function OutdatedNote({ onKeepMine }: { onKeepMine: () => void }) {
  const t = useText(addresses);
  const texts = useText(drafts);
  return (
    <>
      <Note>{t.changedMeanwhile}</Note>
      <Button onPress={onKeepMine}>{texts.keepMine}</Button>
    </>
  );
}

const isComplete = ({ path, port }: RouteRow): boolean => path.trim() !== '' && parsePort(port) !== null;

interface RowProps {
  row: RouteRow;
  /** Null while the row is not stored. */
  address: string | null;
  pathProblem: string | undefined;
  portProblem: string | undefined;
  onChange: (row: RouteRow) => void;
  onRemove: () => void;
}

function RowFields({ row, address, pathProblem, portProblem, onChange, onRemove }: RowProps) {
  const t = useText(addresses);
  const port = portProblem ?? (row.port.trim() && parsePort(row.port) === null ? t.portNumber : undefined);
  return (
    <li className={styles.row}>
      <TextField
        label={t.path}
        value={row.path}
        onChange={(path) => onChange({ ...row, path })}
        error={pathProblem}
        monospace
        autoComplete="off"
      />
      <TextField
        label={t.port}
        value={row.port}
        onChange={(typed) => onChange({ ...row, port: typed })}
        error={port}
        inputMode="numeric"
        monospace
        autoComplete="off"
      />
      <AccessSelect isProtected={row.isProtected} onChange={(isProtected) => onChange({ ...row, isProtected })} />
      <div className={styles.buttons}>
        {address !== null && (
          <a className={buttonClass()} href={address} target="_blank" rel="noreferrer" aria-label={t.openRoute(row.path)}>
            <ExternalLink size={16} aria-hidden />
          </a>
        )}
        <Button kind="quiet" iconOnly aria-label={t.removeRoute(row.path)} onPress={onRemove}>
          <X size={17} aria-hidden />
        </Button>
      </div>
    </li>
  );
}

/** Whether visitors need the gateway token. */
export function AccessSelect({ isProtected, onChange }: { isProtected: boolean; onChange: (isProtected: boolean) => void }) {
  const t = useText(addresses);
  return (
    <Select
      label={t.access}
      value={isProtected ? 'token' : 'everyone'}
      onChange={(next) => onChange(next === 'token')}
      choices={(['token', 'everyone'] as const).map((id) => ({ id, label: t[id] }))}
    />
  );
}
