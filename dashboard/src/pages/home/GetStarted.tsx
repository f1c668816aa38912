import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useEffectEvent } from 'react';

import { enginesQuery, type AgentSummary } from '../../api/agents';
import { CHANNELS } from '../../api/channels';
import { agentModelsQuery, usedModel } from '../../api/models';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { Row } from '../../components/Row';
import * as start from '../../i18n/start';
import { useText } from '../../i18n/language';
import { useLiveChannels } from '../agents/channels/ChannelState';
import { ModelCard } from './ModelCard';
import { PhoneCard } from './PhoneCard';
import type { useStart } from './startState';
import { TalkCard } from './TalkCard';
import styles from './home.module.css';

interface Props {
  agent: AgentSummary;
  steps: ReturnType<typeof useStart>;
}

/** The first steps with the first agent: talk to it, give it a model, reach it from a phone. */
export function GetStarted({ agent, steps }: Props) {
  const t = useText(start);
  const may = useMay();
  const { agentId } = agent;
  const model = usedModel(useQuery(agentModelsQuery(agentId)).data?.models ?? [], agent.model);
  const channels = useLiveChannels(agentId).data;
  const engine = useQuery(enginesQuery).data?.engines.find(({ id }) => id === agent.engine);
  const isDone = model !== null && CHANNELS.some((name) => channels?.[name]);
  const hide = useEffectEvent(steps.hide);
  useEffect(() => (isDone ? () => hide() : undefined), [isDone]); // the next visit shows the normal page
  const about = (
    <p className={styles.about}>
      {t.engine(engine?.label ?? agent.engine)}
      {' · '}
      <Link to="/agents/$id/overview" params={{ id: agentId }}>
        {t.details}
      </Link>
    </p>
  );
  return (
    <>
      <TalkCard agent={agent} about={about} />
      {may('editor') && (
        <div className={styles.cards}>
          {!steps.skipped.includes('model') && <ModelCard agentId={agentId} model={model} onSkip={() => steps.skip('model')} />}
          {!steps.skipped.includes('phone') && <PhoneCard agentId={agentId} channels={channels} onSkip={() => steps.skip('phone')} />}
        </div>
      )}
      <Row>
        <Button kind={isDone ? 'primary' : 'plain'} onPress={steps.hide}>
          {t.finish}
        </Button>
      </Row>
    </>
  );
}
