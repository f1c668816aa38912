import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { flushSync } from 'react-dom';

import type { StoredText } from '../../../api/client';
import { ApiError } from '../../../api/errors';
import {
  baseName,
  contentAddress,
  deleteFile,
  extensionOf,
  fileContent,
  fileImageQuery,
  fileTextQuery,
  hasPreview,
  imageType,
  isRestorable,
  moveFile,
  readText,
  saveFile,
  type FileEntry,
} from '../../../api/files';
import { useMay } from '../../../app/useSession';
import { useUndo } from '../../../app/useUndo';
import { Button, buttonClass } from '../../../components/Button';
import { ConfirmDialog } from '../../../components/ConfirmDialog';
import { DraftConflict } from '../../../components/DraftConflict';
import { Editor } from '../../../components/Editor';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { FormDialog } from '../../../components/FormDialog';
import { ImageView } from '../../../components/ImageView';
import { Loaded } from '../../../components/Loaded';
import { Markdown } from '../../../components/Markdown';
import { StatusBadge } from '../../../components/StatusBadge';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import { useDraft } from '../../../components/useDraft';
import * as files from '../../../i18n/files';
import { useLanguage, useText } from '../../../i18n/language';
import styles from './files.module.css';

interface Props {
  agentId: string;
  entry: FileEntry;
  /** Tells the new path of a moved file, null for a deleted one. */
  onMove: (path: string | null) => void;
  /** Tells whether there are changes that are not saved. */
  onChanged: (isChanged: boolean) => void;
  isChanged: boolean;
}

/** A file or folder of the workspace: its content, and what can be done with it. */
export function FileView({ agentId, entry, onMove, onChanged, isChanged }: Props) {
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
              <Button onPress={() => setMoving(true)} isDisabled={isChanged}>
                {t.rename}
              </Button>
              <Button onPress={() => setDeleting(true)}>{t.delete}</Button>
            </>
          )}
        </div>
      </header>
      {entry.kind === 'file' && <FileContent agentId={agentId} entry={entry} onChanged={onChanged} />}
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

type ContentProps = Pick<Props, 'agentId' | 'entry' | 'onChanged'>;

function FileImage({ agentId, entry }: ContentProps) {
  const t = useText(files);
  return (
    <Loaded query={useQuery(fileImageQuery(agentId, entry))}>
      {(content) => <ImageView content={content} label={entry.path} failure={t.noImage} />}
    </Loaded>
  );
}

function FileContent(props: ContentProps) {
  return imageType(props.entry) ? <FileImage {...props} /> : <FileText {...props} />;
}

function FileText(props: ContentProps) {
  const t = useText(files);
  const query = useQuery(fileTextQuery(props.agentId, props.entry));
  return (
    <Loaded query={query}>
      {(found) => ('reason' in found ? <p className={styles.muted}>{t[found.reason]}</p> : <FileEditor {...props} stored={found} />)}
    </Loaded>
  );
}

function FileEditor({ agentId, entry, stored, onChanged }: ContentProps & { stored: StoredText }) {
  const t = useText(files);
  const may = useMay();
  const queries = useQueryClient();
  const draft = useDraft({
    stored,
    load: async () => {
      const found = await readText(agentId, entry).catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return { text: stored.text, etag: null }; // saving writes it again
        throw error;
      });
      if ('reason' in found) throw new Error(t[found.reason]);
      queries.setQueryData(fileTextQuery(agentId, entry).queryKey, found);
      return found;
    },
    write: (content, etag) => saveFile(agentId, entry.path, content, entry.executable, etag),
    onSaved: () => showToast(t.saved(baseName(entry.path))),
  });
  const [isPreview, setPreview] = useState(false);
  const { isChanged } = draft;
  useEffect(() => {
    onChanged(isChanged);
    return () => onChanged(false);
  }, [isChanged, onChanged]);
  return (
    <>
      {draft.conflict && <DraftConflict {...draft.conflict} onKeepMine={draft.keepMine} onTakeTheirs={draft.discard} />}
      {draft.error && <ErrorPanel error={draft.error} />}
      {isPreview ? (
        <TextPreview text={draft.text} path={entry.path} />
      ) : (
        <Editor
          label={entry.path}
          language={extensionOf(entry.path)}
          value={draft.text}
          onChange={draft.change}
          onSave={draft.save}
          readOnly={!may('editor')}
        />
      )}
      <div className={styles.actions}>
        {may('editor') && (
          <>
            <Button kind="primary" onPress={draft.save} isDisabled={!isChanged || draft.conflict !== null || draft.isSaving}>
              {t.save}
            </Button>
            <Button onPress={draft.discard} isDisabled={!isChanged}>
              {t.discard}
            </Button>
          </>
        )}
        {hasPreview(entry) && <Button onPress={() => setPreview(!isPreview)}>{isPreview ? t.text : t.preview}</Button>}
        {isChanged && <StatusBadge tone="warn">{t.unsaved}</StatusBadge>}
      </div>
    </>
  );
}

/** Render Markdown as a page and SVG as an image. */
function TextPreview({ text, path }: { text: string; path: string }) {
  const t = useText(files);
  const drawing = useMemo(() => new Blob([text], { type: 'image/svg+xml' }), [text]);
  return (
    <section className={styles.preview} aria-label={t.previewOf(path)} tabIndex={0}>
      {extensionOf(path) === 'svg' ? <ImageView content={drawing} label={path} failure={t.noImage} /> : <Markdown text={text} />}
    </section>
  );
}

function MoveForm({ agentId, entry, onMove, onClose }: Pick<Props, 'agentId' | 'entry' | 'onMove'> & { onClose: () => void }) {
  const t = useText(files);
  const [target, setTarget] = useState(entry.path);
  const move = useMutation({
    mutationFn: async () => {
      await moveFile(agentId, entry.path, target.trim());
      showToast(t.moved(target.trim()));
      flushSync(() => onMove(target.trim()));
    },
  });
  return (
    <FormDialog
      title={t.rename}
      action={t.rename}
      onClose={onClose}
      onSubmit={move.mutateAsync}
      isDisabled={!target.trim() || target.trim() === entry.path}
    >
      <TextField label={t.target} value={target} onChange={setTarget} monospace autoComplete="off" autoFocus />
    </FormDialog>
  );
}
