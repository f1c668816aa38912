import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { gatewaysQuery } from '../../api/gateways';
import { deleteStoredFile, downloadLink, moveToGroup, renameFile, type StoredFile } from '../../api/storage';
import { useMay } from '../../app/useSession';
import { useUndo } from '../../app/useUndo';
import { Button, buttonClass } from '../../components/Button';
import { formatBytes } from '../../components/bytes';
import { CodeBlock, CopyButton } from '../../components/CodeBlock';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Dialog } from '../../components/Dialog';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Facts } from '../../components/Facts';
import { TextField } from '../../components/Field';
import { Note, Row } from '../../components/Row';
import { Select } from '../../components/Select';
import { Timestamp } from '../../components/Timestamp';
import { showToast } from '../../components/Toast';
import { useLanguage, useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';
import { useGroupChoices } from './choices';
import { FileSignature } from './FileSignature';

interface Props {
  file: StoredFile;
  onClose: () => void;
}

export function FileDialog({ file, onClose }: Props) {
  const t = useText(storage);
  const may = useMay();
  const { language } = useLanguage();
  const [isDeleting, setDeleting] = useState(false);
  const name = file.name || t.unnamed;
  const remove = useMutation({ mutationFn: () => deleteStoredFile(file), onSuccess: () => showToast(t.fileDeleted(name)) });
  if (isDeleting) {
    return (
      <ConfirmDialog
        title={t.deleteFile(name)}
        action={t.delete}
        isOpen
        onClose={() => setDeleting(false)}
        onConfirm={remove.mutateAsync}
      >
        {t.deleteText}
      </ConfirmDialog>
    );
  }
  const actions = may('editor') && (
    <Button kind="danger" onPress={() => setDeleting(true)}>
      {t.delete}
    </Button>
  );
  return (
    <Dialog title={name} isOpen onClose={onClose} actions={actions}>
      <Facts
        entries={[
          [t.size, formatBytes(file.size, language)],
          [t.type, file.mime_type],
          [t.network, t.networks[file.network]],
          [t.fileCount, file.number_of_files > 1 ? file.number_of_files : null],
          [t.created, <Timestamp at={file.created_at} />],
          [t.expires, file.expires_at && <Timestamp at={file.expires_at} />],
          [t.cid, <CopyLine text={file.cid} label={t.copyCid} />],
          [t.id, <CopyLine text={file.id} label={t.id} />],
        ]}
      />
      {Object.keys(file.keyvalues).length > 0 && (
        <Facts entries={Object.entries(file.keyvalues).map(([key, value]) => [key, String(value)] as const)} />
      )}
      <FileAddress file={file} />
      {may('editor') && <FileForm file={file} />}
      <FileSignature file={file} />
    </Dialog>
  );
}

function CopyLine({ text, label }: { text: string; label: string }) {
  return (
    <>
      <code>{text}</code> <CopyButton text={text} label={label} />
    </>
  );
}

/** The address at the first gateway; that of a private file is made on request. */
function FileAddress({ file }: { file: StoredFile }) {
  const t = useText(storage);
  const gateway = useQuery(gatewaysQuery).data?.rows[0];
  const link = useMutation({ mutationFn: () => downloadLink(gateway!.url, file.cid) });
  if (!gateway) {
    return (
      <Note>
        <Link to="/storage/gateways">{t.noGateway}</Link>
      </Note>
    );
  }
  const address = file.network === 'public' ? `${gateway.url}/ipfs/${file.cid}` : link.data;
  if (!address) {
    return (
      <>
        <Row>
          <Button isDisabled={link.isPending} onPress={() => link.mutate()}>
            {t.makeLink}
          </Button>
        </Row>
        {link.error && <ErrorPanel error={link.error} />}
      </>
    );
  }
  return (
    <>
      <CodeBlock code={address} label={t.link} />
      <Row>
        <a href={address} target="_blank" rel="noopener noreferrer" className={buttonClass()}>
          {t.open}
        </a>
      </Row>
    </>
  );
}

function FileForm({ file }: { file: StoredFile }) {
  const t = useText(storage);
  const [name, setName] = useState(file.name ?? '');
  const rename = useMutation({ mutationFn: () => renameFile(file, name.trim()), onSuccess: () => showToast(t.renamed) });
  const undo = useUndo();
  const move = useMutation({
    mutationFn: async (group: string) => {
      await moveToGroup(file, group);
      return file.group_id ?? '';
    },
    onSuccess: (before, group) => undo(t.moved, () => moveToGroup({ ...file, group_id: group || null }, before)),
  });
  const problem = rename.error ?? move.error;
  return (
    <>
      <TextField label={t.name} value={name} onChange={setName} autoComplete="off" />
      <Row>
        <Button isDisabled={!name.trim() || name.trim() === file.name || rename.isPending} onPress={() => rename.mutate()}>
          {t.rename}
        </Button>
      </Row>
      <Select
        label={t.group}
        choices={useGroupChoices(file.network, t.noGroup)}
        value={file.group_id ?? ''}
        onChange={(group) => move.mutate(group)}
        isDisabled={move.isPending}
      />
      {problem && <ErrorPanel error={problem} />}
    </>
  );
}
