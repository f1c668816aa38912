import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';

import { groupsQuery } from '../../api/storage';
import { buttonClass } from '../../components/Button';
import { EmptyState } from '../../components/EmptyState';
import { Loaded } from '../../components/Loaded';
import { Fields } from '../../components/Row';
import { Select } from '../../components/Select';
import { useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';
import * as vectors from '../../i18n/vectors';
import { useGroupChoices, useNetworkChoices } from './choices';
import { StoragePage } from './StoragePage';
import { VectorAgents } from './VectorAgents';
import { VectorFiles } from './VectorFiles';
import { VectorSearch } from './VectorSearch';

const route = getRouteApi('/shell/storage/vectors');

export function StorageVectorsPage() {
  const t = useText(vectors);
  const words = useText(storage);
  const navigate = route.useNavigate();
  const { network = 'private', group: chosen } = route.useSearch();
  const query = useInfiniteQuery(groupsQuery(network));
  const networks = useNetworkChoices();
  const groups = useGroupChoices(network, t.choose);
  const group = chosen ?? '';
  return (
    <StoragePage title={t.title} lead={t.lead}>
      <Fields>
        <Select
          label={words.network}
          choices={networks}
          value={network}
          onChange={(next) => void navigate({ search: { network: next } })}
        />
        <Select
          label={t.group}
          choices={groups}
          value={group}
          onChange={(next) => void navigate({ search: { network, ...(next && { group: next }) } })}
        />
      </Fields>
      <Loaded query={query}>
        {({ pages }) =>
          pages[0]?.groups.length === 0 && (
            <EmptyState
              title={t.noGroups}
              action={
                <Link to="/storage/groups" search={{ network }} className={buttonClass('primary')}>
                  {t.toGroups}
                </Link>
              }
              command="roost groups create manuals"
            >
              {t.noGroupsText}
            </EmptyState>
          )
        }
      </Loaded>
      {group && (
        <>
          <VectorSearch key={group} groupId={group} />
          <VectorFiles groupId={group} network={network} />
          <VectorAgents groupId={group} />
        </>
      )}
    </StoragePage>
  );
}
