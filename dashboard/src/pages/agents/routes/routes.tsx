import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';

import { domainsQuery, routesQuery } from '../../../api/addresses';
import { agentQuery } from '../../../api/agents';
import { Loaded } from '../../../components/Loaded';
import { Page } from '../../../components/Page';
import * as addresses from '../../../i18n/addresses';
import { useText } from '../../../i18n/language';
import { DomainSection } from './DomainSection';
import { RouteSection } from './RouteSection';

const route = getRouteApi('/shell/agents/$id/routes');

export function AgentRoutesPage() {
  const { id } = route.useParams();
  const t = useText(addresses);
  const agent = useQuery(agentQuery(id));
  const routes = useQuery(routesQuery(id));
  const domains = useQuery(domainsQuery(id));
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={agent}>
        {({ agent: { url } }) => (
          <>
            <Loaded query={routes}>{({ mappings }) => <RouteSection agentId={id} agentUrl={url} routes={mappings} />}</Loaded>
            <Loaded query={domains}>{({ domains: found }) => <DomainSection agentId={id} agentUrl={url} domains={found} />}</Loaded>
          </>
        )}
      </Loaded>
    </Page>
  );
}
