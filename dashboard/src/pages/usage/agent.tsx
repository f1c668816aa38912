import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';

import { agentQuery } from '../../api/agents';
import { agentUsageQuery, DEFAULT_PERIOD } from '../../api/usage';
import { buttonClass } from '../../components/Button';
import { Facts } from '../../components/Facts';
import { Loaded } from '../../components/Loaded';
import { Page, Section } from '../../components/Page';
import { useText } from '../../i18n/language';
import * as usage from '../../i18n/usage';
import { PeriodPicker } from './PeriodPicker';
import { TokenSections } from './TokenSections';
import { useFormats } from './useFormats';

const route = getRouteApi('/shell/agents/$id/usage');

export function AgentUsagePage() {
  const t = useText(usage);
  const { day } = useFormats();
  const { id } = route.useParams();
  const { days: period = DEFAULT_PERIOD } = route.useSearch();
  const navigate = route.useNavigate();
  const tokens = useQuery(agentUsageQuery(id, period));
  const { data: detail } = useQuery(agentQuery(id));
  const action = (
    <Link to="/agents/$id/chat" params={{ id }} className={buttonClass('primary')}>
      {t.toChat}
    </Link>
  );
  return (
    <Page
      title={t.title}
      lead={tokens.data && t.lead(day(tokens.data.from), day(tokens.data.to))}
      actions={<PeriodPicker period={period} onChange={(days) => void navigate({ search: { days } })} />}
    >
      <Loaded query={tokens}>{(report) => <TokenSections report={report} action={action} />}</Loaded>
      {detail && (
        <Section title={t.storage}>
          <Facts
            entries={[
              [
                t.snapshots,
                <Link key="snapshots" to="/agents/$id/snapshots" params={{ id }}>
                  {t.snapshotCount(detail.snapshots.length)}
                </Link>,
              ],
            ]}
          />
        </Section>
      )}
    </Page>
  );
}
