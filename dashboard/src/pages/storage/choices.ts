import { useInfiniteQuery } from '@tanstack/react-query';

import { groupsQuery, type Network } from '../../api/storage';
import { useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';

const NETWORKS = ['private', 'public'] as const;

export function useNetworkChoices() {
  const t = useText(storage);
  return NETWORKS.map((id) => ({ id, label: t.networks[id], description: t.networkText[id] }));
}

/** Return the groups of a network as choices, after one for none. */
export function useGroupChoices(network: Network, none: string) {
  const { data } = useInfiniteQuery(groupsQuery(network));
  const groups = data?.pages.flatMap((page) => page.groups) ?? [];
  return [{ id: '', label: none }, ...groups.map(({ id, name }) => ({ id, label: name }))];
}
