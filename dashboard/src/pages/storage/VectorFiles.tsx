import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';

import type { Network } from '../../api/storage';
import { deleteVectors, vectorFilesQuery, vectorize, type FileVectors } from '../../api/vectors';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Note, Row } from '../../components/Row';
import { StatusBadge, type Tone } from '../../components/StatusBadge';
import { Table, type Column } from '../../components/Table';
import { useText } from '../../i18n/language';
import * as vectors from '../../i18n/vectors';

const TONES: Record<FileVectors['state'], Tone> = {
  none: 'idle',
  queued: 'busy',
  indexing: 'busy',
  indexed: 'ok',
  outdated: 'warn',
  failed: 'danger',
};

/** The files of a group and how far they are indexed. */
export function VectorFiles({ groupId, network }: { groupId: string; network: Network }) {
  const t = useText(vectors);
  const may = useMay();
  const query = useInfiniteQuery(vectorFilesQuery(groupId));
  const files = query.data?.pages.flatMap((page) => page.files) ?? [];
  const add = useMutation({ mutationFn: vectorize });
  const remove = useMutation({ mutationFn: deleteVectors });
  const problem = add.error ?? remove.error;
  const columns: Column<FileVectors>[] = [
    { id: 'name', title: t.name, cell: (file) => file.name ?? file.cid },
    { id: 'state', title: t.state, cell: (file) => <VectorProgress file={file} /> },
  ];
  if (may('editor')) {
    columns.push({
      id: 'actions',
      title: t.actions,
      align: 'end',
      cell: ({ file_id, name, cid, state }) => (
        <Row end>
          {(state === 'none' || state === 'outdated' || state === 'failed') && (
            <Button
              aria-label={t.indexFile(name ?? cid)}
              isDisabled={add.isPending && add.variables === file_id}
              onPress={() => add.mutate(file_id)}
            >
              {t.index}
            </Button>
          )}
          {state !== 'none' && (
            <Button aria-label={t.removeFile(name ?? cid)} onPress={() => remove.mutate(file_id)}>
              {t.remove}
            </Button>
          )}
        </Row>
      ),
    });
  }
  return (
    <Section
      title={t.files}
      actions={
        <Link to="/storage/files" search={{ network, group: groupId }}>
          {t.toFiles}
        </Link>
      }
    >
      {problem && <ErrorPanel error={problem} />}
      <Loaded query={query}>
        {() =>
          files.length > 0 ? (
            <Table label={t.files} columns={columns} rows={files} rowKey={({ file_id }) => file_id} />
          ) : (
            <Note>{t.noFiles}</Note>
          )
        }
      </Loaded>
      <LoadMore query={query} />
    </Section>
  );
}

function VectorProgress({ file }: { file: FileVectors }) {
  const t = useText(vectors);
  return (
    <>
      <StatusBadge tone={TONES[file.state]}>{t.states[file.state]}</StatusBadge>
      {file.state === 'indexing' && file.chunks > 0 && <Note small>{t.progress(file.chunks_done, file.chunks)}</Note>}
      {file.reason && <Note small>{file.reason}</Note>}
    </>
  );
}
