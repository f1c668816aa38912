import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';

import { skillsQuery, uploadSkill, type Skill } from '../../api/library';
import { useMay } from '../../app/useSession';
import { Button, buttonClass } from '../../components/Button';
import { EmptyState } from '../../components/EmptyState';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Page } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note } from '../../components/Row';
import { Table, type Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';
import styles from './library.module.css';
import { SkillDialog } from './SkillDialog';
import { VerdictBadge } from './VerdictView';

export function SkillListPage() {
  const t = useText(library);
  const may = useMay();
  const query = useQuery(skillsQuery);
  const [openCid, setOpenCid] = useState<string | null>(null);
  const upload = useMutation({ mutationFn: uploadSkill, onSuccess: ({ name }) => showToast(t.skillAdded(name)) });
  const open = query.data?.skills.find(({ skillCid }) => skillCid === openCid);
  return (
    <Page
      title={t.skills}
      lead={t.skillsLead}
      actions={may('editor') && <UploadButton isPending={upload.isPending} onFile={upload.mutate} />}
    >
      {upload.error && <ErrorPanel error={upload.error} />}
      <Loaded query={query}>
        {({ skills }) =>
          skills.length > 0 ? (
            <SkillTable skills={skills} onOpen={setOpenCid} />
          ) : (
            <EmptyState
              title={t.noSkills}
              action={
                <Link to="/hub" className={buttonClass('primary')}>
                  {t.toHub}
                </Link>
              }
              command="roost skills add FOLDER"
            >
              {t.noSkillsText}
            </EmptyState>
          )
        }
      </Loaded>
      {may('editor') && <Note small>{t.uploadHint}</Note>}
      {open && <SkillDialog skill={open} onClose={() => setOpenCid(null)} />}
    </Page>
  );
}

function UploadButton({ isPending, onFile }: { isPending: boolean; onFile: (file: File) => void }) {
  const t = useText(library);
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept=".zip,.md"
        hidden
        data-testid="skill"
        aria-label={t.upload}
        onChange={(event) => {
          const file = event.target.files?.[0];
          event.target.value = '';
          if (file) onFile(file);
        }}
      />
      <Button kind="primary" isDisabled={isPending} onPress={() => input.current?.click()}>
        {isPending ? t.uploading : t.upload}
      </Button>
    </>
  );
}

function SkillTable({ skills, onOpen }: { skills: readonly Skill[]; onOpen: (cid: string) => void }) {
  const t = useText(library);
  const columns: Column<Skill>[] = [
    {
      id: 'name',
      title: t.name,
      cell: ({ skillCid, name }) => (
        <button type="button" className={styles.name} aria-haspopup="dialog" onClick={() => onOpen(skillCid)}>
          {name}
        </button>
      ),
    },
    { id: 'verdict', title: t.verdict, cell: ({ verdict }) => <VerdictBadge verdict={verdict} /> },
    { id: 'version', title: t.version, secondary: true, cell: ({ version }) => version },
    { id: 'description', title: t.description, secondary: true, cell: ({ description }) => description },
    { id: 'added', title: t.added, secondary: true, cell: ({ createdAt }) => <Timestamp at={createdAt} /> },
  ];
  return <Table label={t.skills} columns={columns} rows={skills} rowKey={({ skillCid }) => skillCid} />;
}
