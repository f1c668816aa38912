import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useDeferredValue, useEffect, useMemo, useState, type DragEvent, type ReactNode } from 'react';

import { filesQuery, groupQuery, limitsQuery, type FileFilter, type StoredFile } from '../../api/storage';
import { uploads } from '../../api/uploads';
import { useMay } from '../../app/useSession';
import { formatBytes } from '../../components/bytes';
import { CopyButton } from '../../components/CodeBlock';
import { EmptyState } from '../../components/EmptyState';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { LongTable } from '../../components/LongTable';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Fields, Note, Row } from '../../components/Row';
import { Select } from '../../components/Select';
import type { Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { useLanguage, useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';
import { useGroupChoices, useNetworkChoices } from './choices';
import { FileDialog } from './FileDialog';
import styles from './storage.module.css';
import { StoragePage } from './StoragePage';
import { UploadButtons } from './UploadButtons';
import { UploadPanel } from './UploadPanel';

const route = getRouteApi('/shell/storage/files');

export function StorageFilesPage() {
  const t = useText(storage);
  const may = useMay();
  const { language } = useLanguage();
  const { network = 'private', group } = route.useSearch();
  const limits = useQuery(limitsQuery).data;
  const target = { network, group: group ?? '' };
  useRefreshAfterUploads();
  return (
    <StoragePage
      title={t.files}
      lead={
        limits &&
        t.filesLead(formatBytes(limits.stored, language), limits.max_stored == null ? null : formatBytes(limits.max_stored, language))
      }
      actions={may('editor') && <UploadButtons target={target} />}
    >
      <UploadPanel />
      <DropArea isActive={may('editor')} onDrop={(files) => uploads.addFiles(files, target)}>
        <FileBrowser />
      </DropArea>
    </StoragePage>
  );
}

function useRefreshAfterUploads(): void {
  const queries = useQueryClient();
  useEffect(() => uploads.whenDone(() => void queries.invalidateQueries({ queryKey: ['files'] })), [queries]);
}

function FileBrowser() {
  const t = useText(storage);
  const navigate = route.useNavigate();
  const { network = 'private', group = '' } = route.useSearch();
  const [typed, setTyped] = useState('');
  const name = useDeferredValue(typed.trim());
  const groups = useGroupChoices(network, t.anyGroup);
  const { error } = useQuery({ ...groupQuery(network, group), enabled: group !== '' });
  return (
    <>
      <Fields>
        <Select
          label={t.network}
          choices={useNetworkChoices()}
          value={network}
          onChange={(chosen) => void navigate({ search: { network: chosen } })}
        />
        <Select
          label={t.group}
          choices={groups}
          value={group}
          onChange={(chosen) => void navigate({ search: { network, ...(chosen && { group: chosen }) } })}
        />
        <TextField label={t.search} value={typed} onChange={setTyped} type="search" autoComplete="off" />
      </Fields>
      {error ? <ErrorPanel error={error} /> : <FileList filter={{ network, group, name }} />}
    </>
  );
}

function FileList({ filter }: { filter: FileFilter }) {
  const t = useText(storage);
  const query = useInfiniteQuery(filesQuery(filter));
  const [openId, setOpenId] = useState<string | null>(null);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const files = useMemo(() => query.data?.pages.flatMap((page) => page.files) ?? [], [query.data]);
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const open = openId === null ? undefined : files.find(({ id }) => id === openId);
  return (
    <Loaded query={query}>
      {() => (
        <>
          {files.length > 0 && <FileTable files={files} onOpen={setOpenId} onEnd={loadMore} />}
          {files.length === 0 && (filter.name || filter.group) && <Note>{t.noMatch}</Note>}
          {files.length === 0 && !filter.name && !filter.group && (
            <EmptyState title={t.noFiles} command={`roost files upload PATH${filter.network === 'public' ? ' --public' : ''}`}>
              {t.noFilesText} {t.dropText}
            </EmptyState>
          )}
          <LoadMore query={query} />
          {open && <FileDialog file={open} onClose={() => setOpenId(null)} />}
        </>
      )}
    </Loaded>
  );
}

const fileId = ({ id }: StoredFile) => id;

interface FileTableProps {
  files: readonly StoredFile[];
  onOpen: (id: string) => void;
  onEnd: () => void;
}

function FileTable({ files, onOpen, onEnd }: FileTableProps) {
  const t = useText(storage);
  const { language } = useLanguage();
  const columns: Column<StoredFile>[] = [
    {
      id: 'name',
      title: t.name,
      cell: ({ id, name }) => (
        <button type="button" className={styles.name} aria-haspopup="dialog" onClick={() => onOpen(id)}>
          {name || t.unnamed}
        </button>
      ),
    },
    { id: 'size', title: t.size, align: 'end', cell: ({ size }) => formatBytes(size, language) },
    { id: 'type', title: t.type, secondary: true, cell: ({ mime_type }) => mime_type },
    {
      id: 'cid',
      title: t.cid,
      secondary: true,
      cell: ({ cid }) => (
        <Row>
          <code title={cid}>{`${cid.slice(0, 8)}…${cid.slice(-6)}`}</code>
          <CopyButton text={cid} label={t.copyCid} />
        </Row>
      ),
    },
    { id: 'created', title: t.created, secondary: true, cell: ({ created_at }) => <Timestamp at={created_at} /> },
  ];
  return <LongTable label={t.files} columns={columns} rows={files} rowKey={fileId} onEnd={onEnd} />;
}

interface DropProps {
  isActive: boolean;
  onDrop: (files: readonly File[]) => void;
  children: ReactNode;
}

/** Accepts files that are dropped; the buttons do the same for keyboards. */
function DropArea({ isActive, onDrop, children }: DropProps) {
  const [isOver, setOver] = useState(false);
  const handle = (event: DragEvent, over: boolean) => {
    if (!isActive || !event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    setOver(over);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons beside it do the same with the keyboard
    <div
      className={styles.drop}
      data-over={isOver || undefined}
      onDragOver={(event) => handle(event, true)}
      onDragLeave={(event) => handle(event, false)}
      onDrop={(event) => {
        handle(event, false);
        if (isActive) onDrop([...event.dataTransfer.files]);
      }}
    >
      {children}
    </div>
  );
}
