import { useMutation, useQuery } from '@tanstack/react-query';

import { installPlugin, pluginsQuery, uninstallPlugin, type Gateway } from '../../api/gateways';
import { useMay } from '../../app/useSession';
import { Checkbox } from '../../components/Checkbox';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Loaded } from '../../components/Loaded';
import * as gateways from '../../i18n/gateways';
import { useText } from '../../i18n/language';

/** The plugins that the server offers; those that are ticked are installed. */
export function GatewayPlugins({ gateway }: { gateway: Gateway }) {
  const t = useText(gateways);
  const may = useMay();
  const query = useQuery(pluginsQuery);
  const change = useMutation({
    mutationFn: ({ id, isOn }: { id: number; isOn: boolean }): Promise<unknown> =>
      isOn ? installPlugin(gateway.id, id) : uninstallPlugin(gateway.id, id),
  });
  return (
    <>
      <h3>{t.plugins}</h3>
      <Loaded query={query}>
        {({ offered, installed }) =>
          offered.map(({ id, name, description }) => (
            <Checkbox
              key={id}
              isSelected={
                change.isPending && change.variables.id === id
                  ? change.variables.isOn
                  : installed.some((one) => one.gateway_id === gateway.id && one.plugin_id === id)
              }
              isDisabled={!may('editor') || change.isPending}
              onChange={(isOn) => change.mutate({ id, isOn })}
            >
              <strong>{name}</strong>: {description}
            </Checkbox>
          ))
        }
      </Loaded>
      {change.error && <ErrorPanel error={change.error} />}
    </>
  );
}
