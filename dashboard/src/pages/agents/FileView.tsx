import { useMutation, useQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { flushSync } from 'react-dom';

import {
  baseName,
  contentAddress,
  deleteFile,
  fileContent,
  fileTextQuery,
  isRestorable,
  moveFile,
  saveFile,
  type FileEntry,
} from '../../api/files';
import { useMay } from '../../app/useSession';
import { useUndo } from '../../app/useUndo';
import { Button, buttonClass } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Editor } from '../../components/Editor';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { ControlledFormDialog } from '../../components/ControlledFormDialog';
import { Loaded } from '../../components/Loaded';
import { StatusBadge } from '../../components/StatusBadge';
import { Timestamp } from '../../components/Timestamp';
import { showToast } from '../../components/Toast';
import * as files from '../../i18n/files';
import { useLanguage, useText } from '../../i18n/language';
import styles from './files.module.css';

interface Props {
  agentId: string;
  entry: FileEntry;
  /** Tells the new path of a moved file, null for a deleted one. */
  onMove: (path: string | null) => void;
}

/** A file or folder of the workspace: its content, and what can be done with it. */
export function FileView({ agentId, entry, onMove }: Props) {
  const t = useText(files);
  const may = useMay();
  const undo = useUndo();
  const { language } = useLanguage();
  const [isMoving, setMoving] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const name = baseName(entry.path);
  const isFolder = entry.kind === 'folder';
  const remove = async () => {
    const kept = isRestorable(entry) ? await fileContent(agentId, entry.path) : null;
    await deleteFile(agentId, entry);
    flushSync(() => onMove(null)); // before all is loaded again, of which this path no longer exists
    if (kept) undo(t.deleted(name), () => saveFile(agentId, entry.path, kept, entry.executable));
    else showToast(t.deleted(name));
  };
  const deletion = useMutation({ mutationFn: remove });
  const size = new Intl.NumberFormat(language, { style: 'unit', unit: 'byte', unitDisplay: 'long' }).format(entry.size);
  return (
    <section className={styles.view} aria-label={entry.path}>
      <header className={styles.head}>
        <div className={styles.about}>
          <strong>{entry.path}</strong>
          <span className={styles.muted}>
            {isFolder ? t.folder : size}, <Timestamp at={entry.modifiedAt} />
          </span>
        </div>
        <div className={styles.actions}>
          {entry.kind === 'file' && (
            <a className={buttonClass()} href={contentAddress(agentId, entry.path)} download={name}>
              <Download size={16} aria-hidden /> {t.download}
            </a>
          )}
          {may('editor') && (
            <>
              <Button onPress={() => setMoving(true)}>{t.rename}</Button>
              <Button onPress={() => setDeleting(true)}>{t.delete}</Button>
            </>
          )}
        </div>
      </header>
      {entry.kind === 'file' && <FileContent agentId={agentId} entry={entry} />}
      {entry.kind !== 'file' && !isFolder && <p className={styles.muted}>{t.noFile}</p>}
      {isMoving && <MoveForm agentId={agentId} entry={entry} onMove={onMove} onClose={() => setMoving(false)} />}
      <ConfirmDialog
        title={t.deleteTitle(name)}
        action={t.delete}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={() => deletion.mutateAsync()}
      >
        <p>{isFolder ? t.deleteFolder : t.deleteFile}</p>
      </ConfirmDialog>
    </section>
  );
}

function FileContent({ agentId, entry }: { agentId: string; entry: FileEntry }) {
  const t = useText(files);
  const query = useQuery(fileTextQuery(agentId, entry));
  return (
    <Loaded query={query}>
      {(found) =>
        'reason' in found ? (
          <p className={styles.muted}>{t[found.reason]}</p>
        ) : (
          <FileEditor agentId={agentId} entry={entry} text={found.text} />
        )
      }
    </Loaded>
  );
}

function FileEditor({ agentId, entry, text }: { agentId: string; entry: FileEntry; text: string }) {
  const t = useText(files);
  const may = useMay();
  const [draft, setDraft] = useState<string | null>(null);
  const save = useMutation({
    mutationFn: (content: string) => saveFile(agentId, entry.path, content, entry.executable),
    onSuccess: (_, content) => {
      setDraft((now) => (now === content ? null : now)); // typing goes on while it is saved
      showToast(t.saved(baseName(entry.path)));
    },
  });
  const isChanged = draft !== null && draft !== text;
  const submit = () => {
    if (isChanged && !save.isPending) save.mutate(draft);
  };
  return (
    <>
      {save.error && <ErrorPanel error={save.error} />}
      <Editor
        label={entry.path}
        language={entry.path.slice(entry.path.lastIndexOf('.') + 1).toLowerCase()}
        value={draft ?? (save.isSuccess ? save.variables : text)}
        onChange={setDraft}
        onSave={submit}
        readOnly={!may('editor')}
      />
      {may('editor') && (
        <div className={styles.actions}>
          <Button kind="primary" onPress={submit} isDisabled={!isChanged || save.isPending}>
            {t.save}
          </Button>
          <Button onPress={() => setDraft(text)} isDisabled={!isChanged}>
            {t.discard}
          </Button>
          {isChanged && <StatusBadge tone="warn">{t.unsaved}</StatusBadge>}
        </div>
      )}
    </>
  );
}

function MoveForm({ agentId, entry, onMove, onClose }: Props & { onClose: () => void }) {
  const t = useText(files);
  const [target, setTarget] = useState(entry.path);
  const move = useMutation({
    mutationFn: async () => {
      await moveFile(agentId, entry.path, target.trim());
      showToast(t.moved(target.trim()));
      flushSync(() => onMove(target.trim()));
    },
    onSuccess: onClose,
  });
  return (
    <ControlledFormDialog
      title={t.rename}
      action={t.rename}
      isOpen
      onClose={onClose}
      onSubmit={() => move.mutate()}
      isPending={move.isPending}
      isDisabled={!target.trim() || target.trim() === entry.path}
      error={move.error}
    >
      <TextField label={t.target} value={target} onChange={setTarget} monospace autoComplete="off" autoFocus />
    </ControlledFormDialog>
  );
}
