import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';
import { inner } from './storage';

export type Gateway = components['schemas']['GatewayRecord'];
export type Control = components['schemas']['AccessControlRecord'];
export type CustomDomain = components['schemas']['CustomDomainRecord'];
export type Plugin = components['schemas']['PluginRecord'];
/** Kinds of access controls, as the paths name them. */
export type ControlKind = 'access_tokens' | 'ips' | 'hosts';

const at = (id: string) => ({ params: { path: { id } } });

export const gatewaysQuery = queryOptions({
  queryKey: ['gateways'],
  queryFn: ({ signal }) => inner(api.GET('/v3/gateways', { params: { query: { pageSize: 100 } }, signal })),
});

export const pluginsQuery = queryOptions({
  queryKey: ['gateways', 'plugins'],
  queryFn: async ({ signal }) => {
    const [offered, installed] = await Promise.all([
      inner(api.GET('/v3/gateways/plugins/marketplace', { signal })),
      inner(api.GET('/v3/gateways/plugins', { signal })),
    ]);
    return { offered, installed };
  },
});

export const createGateway = (domain: string) => inner(api.POST('/v3/gateways', { body: { domain } }));
export const deleteGateway = (id: string) => body(api.DELETE('/v3/gateways/{id}', at(id)));

/** Allow a host or address; a token is made by the server. Returns the new control. */
export function addControl(id: string, kind: ControlKind, value: string): Promise<Control> {
  if (kind === 'ips') return inner(api.POST('/v3/gateways/{id}/ips', { ...at(id), body: { ip: value } }));
  if (kind === 'hosts') return inner(api.POST('/v3/gateways/{id}/hosts', { ...at(id), body: { host: value } }));
  return inner(api.POST('/v3/gateways/{id}/access_tokens', at(id)));
}

export const removeControl = (id: string, kind: ControlKind, control: string) =>
  body(api.DELETE('/v3/gateways/{id}/{kind}/{control}', { params: { path: { id, kind, control } } }));

export const addGatewayDomain = (id: string, domain: string) =>
  inner(api.POST('/v3/gateways/{id}/custom_domain', { ...at(id), body: { domain } }));

const atDomain = (id: string, domainId: string) => ({ params: { path: { id, domainId } } });

export const verifyGatewayDomain = (id: string, domainId: string) =>
  inner(api.POST('/v3/gateways/{id}/custom_domain/{domainId}/verify', atDomain(id, domainId)));

export const removeGatewayDomain = (id: string, domainId: string) =>
  body(api.DELETE('/v3/gateways/{id}/custom_domain/{domainId}', atDomain(id, domainId)));

export const installPlugin = (gatewayId: string, pluginId: number) =>
  inner(
    api.POST('/v3/gateways/plugins/{gateway_id}', { params: { path: { gateway_id: gatewayId } }, body: { plugin_id: pluginId } }),
  );

export const uninstallPlugin = (gatewayId: string, pluginId: number) =>
  body(
    api.DELETE('/v3/gateways/plugins/{gateway_id}/plugin/{plugin_id}', {
      params: { path: { gateway_id: gatewayId, plugin_id: pluginId } },
    }),
  );
