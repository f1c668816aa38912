import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { agentSkillsQuery, detachSkill, skillUpdatesQuery, type AgentSkill, type SkillUpdate } from '../../../api/agentSkills';
import { useMay } from '../../../app/useSession';
import { Button, buttonClass } from '../../../components/Button';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { EmptyState } from '../../../components/EmptyState';
import { Facts } from '../../../components/Facts';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { Page } from '../../../components/Page';
import { Row } from '../../../components/Row';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import { useText } from '../../../i18n/language';
import * as skills from '../../../i18n/skillsOfAgent';
import library from '../../library/library.module.css';
import { LevelBadge } from '../../library/VerdictView';
import { AttachDialog, AttachedDialog, UpdateDialog } from './SkillDialogs';

const route = getRouteApi('/shell/agents/$id/skills');

export function AgentSkillsPage() {
  const { id } = route.useParams();
  const t = useText(skills);
  const may = useMay();
  const [isAttaching, setAttaching] = useState(false);
  const query = useQuery(agentSkillsQuery(id));
  const updates = useQuery(skillUpdatesQuery(id)).data?.updates ?? [];
  const attach = may('editor') && (
    <Button kind="primary" onPress={() => setAttaching(true)}>
      <Plus size={17} aria-hidden /> {t.attach}
    </Button>
  );
  const actions = (
    <>
      <Link to="/hub" className={buttonClass()}>
        {t.hub}
      </Link>
      {attach}
    </>
  );
  return (
    <Page title={t.title} lead={t.lead} actions={actions}>
      <Loaded query={query}>
        {({ skills: attached }) =>
          attached.length === 0 ? (
            <EmptyState title={t.emptyTitle}>{t.emptyText}</EmptyState>
          ) : (
            <ItemList label={t.title}>
              {attached.map((skill) => (
                <SkillItem key={skill.skillId} skill={skill} update={updates.find(({ skillId }) => skillId === skill.skillId)} />
              ))}
            </ItemList>
          )
        }
      </Loaded>
      {isAttaching && <AttachDialog agentId={id} attached={query.data?.skills ?? []} onClose={() => setAttaching(false)} />}
    </Page>
  );
}

function SkillItem({ skill, update }: { skill: AgentSkill; update: SkillUpdate | undefined }) {
  const t = useText(skills);
  const may = useMay();
  const [isShown, setShown] = useState(false);
  const [updating, setUpdating] = useState<SkillUpdate | null>(null); // kept until its dialog closes
  const remove = useMutation({
    mutationFn: () => detachSkill(skill.agentId, skill.skillId),
    onSuccess: () => showToast(t.removed(skill.name)),
  });
  const facts = (
    <>
      <span>{t.version(skill.version)}</span>
      <Timestamp at={skill.attachedAt} />
      {!skill.synced && <span>{t.waiting}</span>}
      {skill.synced && skill.loaded === false && <span>{skill.fault ? t.fault(skill.fault) : t.notLoaded}</span>}
      {skill.synced && skill.loaded && skill.fault && <span>{skill.fault}</span>}
    </>
  );
  const actions = may('editor') && (
    <>
      {update && <Button onPress={() => setUpdating(update)}>{t.updateTo(update.latestVersion)}</Button>}
      <ConfirmButton action={t.remove} title={t.removeTitle(skill.name)} onConfirm={remove.mutateAsync}>
        {t.removeText}
      </ConfirmButton>
    </>
  );
  const title = (
    <button type="button" className={library.name} aria-haspopup="dialog" onClick={() => setShown(true)}>
      {skill.name}
    </button>
  );
  return (
    <Item title={title} badge={<LevelBadge level={skill.verdict} />} facts={facts} actions={actions}>
      <p>{skill.description}</p>
      <Missing skill={skill} />
      {isShown && <AttachedDialog skill={skill} onClose={() => setShown(false)} />}
      {updating && <UpdateDialog agentId={skill.agentId} update={updating} onClose={() => setUpdating(null)} />}
    </Item>
  );
}

/** What the agent lacks for a skill. */
function Missing({ skill: { agentId, missing } }: { skill: AgentSkill }) {
  const t = useText(skills);
  const may = useMay();
  const secrets = missing.secrets.join(', ');
  const programs = missing.programs?.join(', ');
  const hosts = missing.hosts.join(', ');
  if (!secrets && !programs && !hosts) return null;
  return (
    <>
      <Facts
        entries={[
          [t.missingSecrets, secrets ? <code>{secrets}</code> : null],
          [t.missingPrograms, programs ? <code>{programs}</code> : null],
          [t.refusedHosts, hosts ? <code>{hosts}</code> : null],
        ]}
      />
      {secrets && may('editor') && (
        <Row>
          <Link to="/agents/$id/secrets" params={{ id: agentId }}>
            {t.toSecrets}
          </Link>
        </Row>
      )}
    </>
  );
}
