import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { attachSkill, updateSkill, type AgentSkill, type SkillUpdate } from '../../../api/agentSkills';
import { skillsQuery, skillVersionsQuery, type Skill } from '../../../api/library';
import { Checkbox } from '../../../components/Checkbox';
import { Dialog } from '../../../components/Dialog';
import { FormDialog } from '../../../components/FormDialog';
import { Loaded } from '../../../components/Loaded';
import { Note } from '../../../components/Row';
import { Select } from '../../../components/Select';
import { showToast } from '../../../components/Toast';
import { useText } from '../../../i18n/language';
import * as skills from '../../../i18n/skillsOfAgent';
import { SkillDialog } from '../../library/SkillDialog';
import { VerdictView } from '../../library/VerdictView';

interface Closing {
  onClose: () => void;
}

/** Attaches a skill of the library. A dangerous one needs a word. */
export function AttachDialog({ agentId, attached, onClose }: Closing & { agentId: string; attached: readonly AgentSkill[] }) {
  const t = useText(skills);
  const query = useQuery(skillsQuery);
  const [chosen, setChosen] = useState<string | null>(null);
  const [acknowledged, setAcknowledged] = useState<string | null>(null);
  const free = (query.data?.skills ?? []).filter(({ skillId }) => !attached.some((one) => one.skillId === skillId));
  const skill = free.find(({ skillCid }) => skillCid === chosen) ?? free[0];
  const isAcknowledged = acknowledged === skill?.skillCid;
  const attach = useMutation({
    mutationFn: async (wanted: Skill) => {
      await attachSkill(agentId, wanted.skillCid, isAcknowledged);
      showToast(t.attached(wanted.name));
    },
  });
  return (
    <FormDialog
      title={t.attach}
      action={t.attachAction}
      onClose={onClose}
      onSubmit={() => attach.mutateAsync(skill!)}
      isDisabled={!skill || (skill.verdict.level === 'dangerous' && !isAcknowledged)}
    >
      <Loaded query={query}>
        {() =>
          skill ? (
            <>
              <Select
                label={t.skill}
                value={skill.skillCid}
                onChange={setChosen}
                choices={free.map(({ skillCid, name, version }) => ({ id: skillCid, label: name, description: t.version(version) }))}
                hint={skill.description}
              />
              <Findings
                skill={skill}
                isAcknowledged={isAcknowledged}
                onAcknowledge={(is) => setAcknowledged(is ? skill.skillCid : null)}
              />
            </>
          ) : (
            <p>
              {t.emptyLibrary} <Link to="/hub">{t.hub}</Link>
            </p>
          )
        }
      </Loaded>
    </FormDialog>
  );
}

/** Takes the newest version of a skill, after what its check found. */
export function UpdateDialog({ agentId, update, onClose }: Closing & { agentId: string; update: SkillUpdate }) {
  const t = useText(skills);
  const query = useQuery(skillVersionsQuery(update.skillId));
  const [isAcknowledged, setAcknowledged] = useState(false);
  const latest = query.data?.versions.find(({ skillCid }) => skillCid === update.latestCid);
  const take = useMutation({
    mutationFn: () => updateSkill(agentId, update.skillId, update.latestCid, isAcknowledged),
    onSuccess: () => showToast(t.updated(update.name, update.latestVersion)),
  });
  return (
    <FormDialog
      title={t.updateTitle(update.name)}
      action={t.update}
      onClose={onClose}
      onSubmit={take.mutateAsync}
      isDisabled={!latest || (update.verdict === 'dangerous' && !isAcknowledged)}
    >
      <Note>{t.updateText(update.version, update.latestVersion)}</Note>
      <Loaded query={query}>
        {() => latest && <Findings skill={latest} isAcknowledged={isAcknowledged} onAcknowledge={setAcknowledged} />}
      </Loaded>
    </FormDialog>
  );
}

interface FindingsProps {
  skill: Skill;
  isAcknowledged: boolean;
  onAcknowledge: (is: boolean) => void;
}

function Findings({ skill, isAcknowledged, onAcknowledge }: FindingsProps) {
  const t = useText(skills);
  return (
    <>
      <VerdictView verdict={skill.verdict} />
      {skill.verdict.level === 'dangerous' && (
        <Checkbox isSelected={isAcknowledged} onChange={onAcknowledge}>
          {t.acknowledge}
        </Checkbox>
      )}
    </>
  );
}

/** The version of a skill that an agent has, as the library knows it. */
export function AttachedDialog({ skill, onClose }: Closing & { skill: AgentSkill }) {
  const query = useQuery(skillVersionsQuery(skill.skillId));
  const found = query.data?.versions.find(({ skillCid }) => skillCid === skill.skillCid);
  if (found) return <SkillDialog skill={found} onClose={onClose} />;
  return (
    <Dialog title={skill.name} isOpen onClose={onClose}>
      <Loaded query={query}>{() => <p>{skill.description}</p>}</Loaded>
    </Dialog>
  );
}
