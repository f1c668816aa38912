import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';

import { api, body } from '../../api/client';
import { archiveTemplate, templateQuery, type Template } from '../../api/library';
import { useMay, useSession } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Dialog } from '../../components/Dialog';
import { Facts } from '../../components/Facts';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Markdown } from '../../components/Markdown';
import { Loaded } from '../../components/Loaded';
import { Note, PlainList } from '../../components/Row';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';

/** A template: what it needs and says; an agent is created from it here. */
export function TemplateDialog({ templateId, onClose }: { templateId: string; onClose: () => void }) {
  const t = useText(library);
  const may = useMay();
  const session = useSession();
  const query = useQuery(templateQuery(templateId));
  const [step, setStep] = useState<'show' | 'use' | 'archive'>('show');
  const template = query.data?.template;
  const archive = useMutation({
    mutationFn: () => archiveTemplate(templateId),
    onSuccess: () => showToast(t.archived(template?.name ?? '')),
  });
  const back = () => setStep('show');
  if (template && step === 'use') return <UseDialog slug={template.slug} name={template.name} onClose={back} />;
  if (template && step === 'archive') {
    return (
      <ConfirmDialog
        title={t.archiveTitle(template.name)}
        action={t.archive}
        isOpen
        onClose={onClose}
        onConfirm={archive.mutateAsync}
      >
        {t.archiveText}
      </ConfirmDialog>
    );
  }
  const isOwn = template && template.submittedBy === session?.tenant.id && template.status !== 'archived';
  const actions = may('editor') && template && (
    <>
      {isOwn && <Button onPress={() => setStep('archive')}>{t.archive}</Button>}
      <Button kind="primary" isDisabled={template.status === 'archived'} onPress={() => setStep('use')}>
        {t.use}
      </Button>
    </>
  );
  return (
    <Dialog title={template?.name ?? t.templates} isOpen onClose={onClose} actions={actions}>
      <Loaded query={query}>
        {({ template: found }) => (
          <>
            <p>{found.description}</p>
            <Facts
              entries={[
                [t.status, t.statuses[found.status]],
                [t.author, found.authorName],
                [t.category, found.category],
                [t.version, found.version],
                [t.skills, found.includedSkillCids.join(', ') || null],
                [t.gitUrl, found.gitUrl ? <code>{found.gitUrl}</code> : null],
              ]}
            />
            <RequiredSecrets secrets={found.requiredSecrets} />
            <Markdown text={found.readme} />
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

function RequiredSecrets({ secrets }: { secrets: Template['requiredSecrets'] }) {
  const t = useText(library);
  if (secrets.length === 0) return null;
  return (
    <PlainList label={t.secrets}>
      {secrets.map(({ name, description, required }) => (
        <li key={name}>
          <code>{name}</code> ({required ? t.required : t.optional})<Note small>{description}</Note>
        </li>
      ))}
    </PlainList>
  );
}

function UseDialog({ slug, name, onClose }: { slug: string; name: string; onClose: () => void }) {
  const t = useText(library);
  const navigate = useNavigate();
  const [agentName, setAgentName] = useState(name);
  const create = useMutation({
    mutationFn: () => body(api.POST('/v0/agents', { body: { name: agentName.trim(), templateId: slug } })),
    onSuccess: ({ agent }) => {
      showToast(t.created(agent.name));
      void navigate({ to: '/agents/$id/overview', params: { id: agent.agentId } });
    },
  });
  return (
    <FormDialog title={t.use} action={t.use} onClose={onClose} onSubmit={create.mutateAsync} isDisabled={!agentName.trim()}>
      <TextField label={t.agentName} value={agentName} onChange={setAgentName} autoComplete="off" autoFocus />
    </FormDialog>
  );
}
