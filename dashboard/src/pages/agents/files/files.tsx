import { useMutation, useQueries } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { File as FileIcon, Folder as FolderIcon, FolderPlus } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';

import { baseName, folderQuery, joinPath, makeFolder, parentOf, saveFile, type FileEntry, type Folder } from '../../../api/files';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { FileButton, FileDrop } from '../../../components/FileDrop';
import { FormDialog } from '../../../components/FormDialog';
import { LeaveDialog, LeaveGuard } from '../../../components/LeaveGuard';
import { Page } from '../../../components/Page';
import { Skeleton } from '../../../components/Skeleton';
import { showToast } from '../../../components/Toast';
import { Tree, type TreeNode } from '../../../components/Tree';
import * as files from '../../../i18n/files';
import { useText } from '../../../i18n/language';
import { FileView } from './FileView';
import styles from './files.module.css';

const route = getRouteApi('/shell/agents/$id/files');
const ROOT = '';

export function AgentFilesPage() {
  const { id } = route.useParams();
  const t = useText(files);
  const may = useMay();
  const workspace = useWorkspace(id);
  const [selected, setSelected] = useState<string | null>(null);
  const [isNaming, setNaming] = useState(false);
  const [isChanged, setChanged] = useState(false);
  const [wanted, setWanted] = useState<string | null>(null);
  const entry = useEntry(workspace.entries, selected, isChanged);
  const folder = entry?.kind === 'folder' ? entry.path : parentOf(selected ?? ROOT);
  const upload = useUpload(id, folder);
  const canWrite = may('editor');
  const open = (path: string) => {
    setWanted(null);
    setSelected(path);
    if (workspace.entries.get(path)?.kind === 'folder') workspace.setExpanded(new Set([...workspace.expanded, path]));
  };
  const select = (path: string) => (isChanged && path !== selected ? setWanted(path) : open(path));
  const actions = canWrite && (
    <>
      <Button onPress={() => setNaming(true)}>
        <FolderPlus size={17} aria-hidden /> {t.newFolder}
      </Button>
      <FileButton label={upload.label} onFiles={upload.mutate} isDisabled={upload.isPending} />
    </>
  );
  const leave = (next: string | null) => {
    workspace.setExpanded(new Set([...workspace.expanded].filter((path) => !`${path}/`.startsWith(`${selected}/`))));
    setSelected(next);
  };
  return (
    <Page title={t.title} lead={t.lead} actions={actions} fills>
      <FileDrop label={t.drop} onFiles={upload.mutate} isDisabled={!canWrite || upload.isPending}>
        <div className={styles.layout}>
          <div className={styles.tree}>
            {upload.error && <ErrorPanel error={upload.error} title={t.notUploaded(upload.failed)} />}
            <WorkspaceTree workspace={workspace} selected={selected} onSelect={select} />
          </div>
          {entry ? (
            <FileView key={entry.path} agentId={id} entry={entry} onMove={leave} onChanged={setChanged} isChanged={isChanged} />
          ) : (
            <p className={styles.muted}>{t.choose}</p>
          )}
        </div>
      </FileDrop>
      <LeaveGuard isChanged={isChanged} />
      <LeaveDialog isOpen={wanted !== null} onStay={() => setWanted(null)} onLeave={() => wanted !== null && open(wanted)} />
      {isNaming && <FolderForm agentId={id} folder={folder} onClose={() => setNaming(false)} />}
    </Page>
  );
}

interface TreeProps {
  workspace: ReturnType<typeof useWorkspace>;
  selected: string | null;
  onSelect: (path: string) => void;
}

function WorkspaceTree({ workspace, selected, onSelect }: TreeProps) {
  const t = useText(files);
  return (
    <>
      {workspace.error && <ErrorPanel error={workspace.error} onRetry={workspace.retry} />}
      {!workspace.root && !workspace.error && <Skeleton />}
      {workspace.root?.entries.length === 0 && <EmptyState title={t.emptyTitle}>{t.emptyText}</EmptyState>}
      {workspace.nodes.length > 0 && (
        <Tree
          label={t.title}
          nodes={workspace.nodes}
          expanded={workspace.expanded}
          onExpand={workspace.setExpanded}
          selected={selected}
          onSelect={onSelect}
          toggleLabel={t.toggle}
          emptyLabel={t.emptyFolder}
          loadingLabel={t.loading}
        />
      )}
      {workspace.isCut && <p className={styles.muted}>{t.cut}</p>}
    </>
  );
}

/** The chosen entry; one that is deleted while it is edited stays, so that it can be saved again. */
function useEntry(entries: ReadonlyMap<string, FileEntry>, selected: string | null, isChanged: boolean): FileEntry | undefined {
  const last = useRef<FileEntry | undefined>(undefined);
  const found = selected === null ? undefined : entries.get(selected);
  if (found || !isChanged || last.current?.path !== selected) last.current = found;
  return last.current;
}

/** The folders that are open, as a tree. */
function useWorkspace(agentId: string) {
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const paths = useMemo(() => [ROOT, ...expanded], [expanded]);
  const found = useQueries({ queries: paths.map((path) => folderQuery(agentId, path)) });
  const folders = new Map<string, Folder>();
  for (const [index, { data }] of found.entries()) if (data) folders.set(paths[index]!, data);
  const entries = new Map<string, FileEntry>();
  for (const { entries: some } of folders.values()) for (const one of some) entries.set(one.path, one);
  const failed = found.find(({ error }) => error);
  return {
    root: folders.get(ROOT),
    entries,
    nodes: toNodes(folders, ROOT),
    isCut: [...folders.values()].some(({ isCut }) => isCut),
    error: failed?.error,
    retry: () => failed?.refetch(),
    expanded,
    setExpanded,
  };
}

function toNodes(folders: ReadonlyMap<string, Folder>, path: string): readonly TreeNode[] {
  return (folders.get(path)?.entries ?? []).map((entry) => {
    const isFolder = entry.kind === 'folder';
    const icon = isFolder ? <FolderIcon size={16} aria-hidden /> : <FileIcon size={16} aria-hidden />;
    const children = isFolder ? { children: folders.has(entry.path) ? toNodes(folders, entry.path) : null } : {};
    return { id: entry.path, title: baseName(entry.path), icon, ...children };
  });
}

/** Uploads files one after the other; those before a failed one stay. */
function useUpload(agentId: string, folder: string) {
  const t = useText(files);
  const [progress, setProgress] = useState<{ done: number; all: number; name: string }>({ done: 0, all: 0, name: '' });
  const upload = useMutation({
    mutationFn: async (chosen: readonly File[]) => {
      for (const [done, file] of chosen.entries()) {
        setProgress({ done, all: chosen.length, name: file.name });
        await saveFile(agentId, joinPath(folder, file.name), file);
      }
    },
    onSuccess: (_, { length }) => {
      if (length > 0) showToast(t.uploaded(length));
    },
  });
  const label = upload.isPending ? t.uploading(progress.done, progress.all) : t.upload;
  return { ...upload, label, failed: progress.name };
}

function FolderForm({ agentId, folder, onClose }: { agentId: string; folder: string; onClose: () => void }) {
  const t = useText(files);
  const [name, setName] = useState('');
  const make = useMutation({
    mutationFn: () => makeFolder(agentId, joinPath(folder, name.trim())),
    onSuccess: () => showToast(t.folderMade(name.trim())),
  });
  return (
    <FormDialog title={t.newFolder} action={t.newFolder} onClose={onClose} onSubmit={make.mutateAsync} isDisabled={!name.trim()}>
      <TextField label={t.folderName} hint={t.inFolder(folder)} value={name} onChange={setName} autoComplete="off" autoFocus />
    </FormDialog>
  );
}
