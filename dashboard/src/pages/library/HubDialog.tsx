import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { hubSkillQuery, installHubSkill, unpublishSkill, type HubSkill } from '../../api/library';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { Checkbox } from '../../components/Checkbox';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Dialog } from '../../components/Dialog';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Facts } from '../../components/Facts';
import { Markdown } from '../../components/Markdown';
import { Note } from '../../components/Row';
import { Loaded } from '../../components/Loaded';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';
import { VerdictView } from './VerdictView';

/** A skill of the hub: the verdict first, then what it needs and says. */
export function HubDialog({ slug, onClose }: { slug: string; onClose: () => void }) {
  const t = useText(library);
  const may = useMay();
  const [isWithdrawing, setWithdrawing] = useState(false);
  const query = useQuery({ ...hubSkillQuery(slug), enabled: !isWithdrawing }); // none after the withdrawal
  const [isAcknowledged, setAcknowledged] = useState(false);
  const skill = query.data?.skill;
  const isClean = skill?.verdict?.level === 'clean';
  const install = useMutation({
    mutationFn: () => installHubSkill(skill!.hubSkillId, isAcknowledged),
    onSuccess: (installed) => {
      showToast(t.skillAdded(installed.skill.name));
      onClose();
    },
  });
  const withdraw = useMutation({
    mutationFn: () => unpublishSkill(skill!.hubSkillId),
    onSuccess: () => showToast(t.withdrawn(skill?.name ?? slug)),
  });
  if (skill && isWithdrawing) {
    return (
      <ConfirmDialog
        title={t.withdrawTitle(skill.name)}
        action={t.withdraw}
        isOpen
        onClose={onClose}
        onConfirm={withdraw.mutateAsync}
      >
        {t.withdrawText}
      </ConfirmDialog>
    );
  }
  const actions = may('editor') && skill && (
    <>
      {query.data?.own && <Button onPress={() => setWithdrawing(true)}>{t.withdraw}</Button>}
      <Button kind="primary" isDisabled={install.isPending || !(isClean || isAcknowledged)} onPress={() => install.mutate()}>
        {t.install}
      </Button>
    </>
  );
  return (
    <Dialog title={skill?.name ?? slug} isOpen onClose={onClose} actions={actions}>
      <Loaded query={query}>
        {({ skill: found }) => (
          <>
            <VerdictView verdict={found.verdict} />
            {found.acknowledgement && <Note>{t.publisherReason(found.acknowledgement)}</Note>}
            {!isClean && may('editor') && (
              <Checkbox isSelected={isAcknowledged} onChange={setAcknowledged}>
                {t.acknowledge}
              </Checkbox>
            )}
            {install.error && <ErrorPanel error={install.error} />}
            <p>{found.description}</p>
            <SkillFacts skill={found} />
            <Markdown text={found.longDescription} />
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

function SkillFacts({ skill: found }: { skill: HubSkill }) {
  const t = useText(library);
  return (
    <Facts
      entries={[
        [t.version, found.version],
        [t.publisher, found.bundled ? t.comesWithRoost : found.slug],
        [t.author, found.authorName],
        [t.category, found.category],
        [t.license, found.license],
        [t.installs, found.installCount],
        [t.programs, found.wants?.programs.join(', ') || null],
        [t.hosts, found.wants?.hosts.join(', ') || null],
        [t.secrets, found.envVars?.map(({ name }) => name).join(', ') || null],
      ]}
    />
  );
}
