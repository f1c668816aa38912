"""Configurations for a proxy of the operator's own, as texts. Pure.

They forward every name of the server with `Host` unchanged, and add nothing that Roost does itself: no limit of bodies,
no buffer, no compression. Only Caddy obtains certificates for names as they appear; the others need them in files.
"""

from dataclasses import dataclass
from string import Template
from typing import Literal

from roost.http.tls.certificates import PERMISSION_PATH

ProxyProgram = Literal["caddy", "nginx", "traefik"]


@dataclass(frozen=True)
class ProxySite:
    """What is served. upstream: host and port of Roost. certificate, key: paths of PEM files."""

    domain: str
    upstream: str
    public_port: int = 443
    certificate: str = "/etc/ssl/roost/certificate.pem"
    key: str = "/etc/ssl/roost/key.pem"


def render_proxy_config(program: ProxyProgram, site: ProxySite) -> str:
    """Return the configuration, with what Roost's own settings have to be on top."""
    head = _HEAD.substitute(port=site.public_port)
    suffix = "" if site.public_port == 443 else f":{site.public_port}"
    return head + _TEMPLATES[program].substitute(
        domain=site.domain,
        pattern=site.domain.replace(".", r"\."),
        upstream=site.upstream,
        port=site.public_port,
        suffix=suffix,
        permission=PERMISSION_PATH,
        certificate=site.certificate,
        key=site.key,
    )


_HEAD = Template("""\
# Roost needs these settings, for a proxy on the same machine:
#   public_scheme = "https"
#   public_port = $port
#   trusted_proxies = "127.0.0.1, ::1"
""")

_CADDY = Template("""\
# Caddyfile. Caddy obtains certificates for the names that Roost serves.
{
	https_port $port
	on_demand_tls {
		ask http://$upstream$permission
	}
	servers {
		strict_sni_host on
		max_header_size 64KiB
		timeouts {
			read_header 20s
			idle 75s
		}
	}
}

http:// {
	redir https://{host}$suffix{uri} 308
}

https:// {
	tls {
		on_demand
	}
	@platform host $domain *.$domain *.*.$domain *.ipfs.*.gateways.$domain
	@tenants not host $domain *.$domain *.*.$domain *.ipfs.*.gateways.$domain
	header @platform {
		Strict-Transport-Security "max-age=31536000; includeSubDomains"
		defer
	}
	header @tenants {
		Strict-Transport-Security "max-age=31536000"
		defer
	}
	reverse_proxy $upstream {
		stream_close_delay 24h
		transport http {
			compression off
			expect_continue_timeout 10s
			keepalive 60s
		}
	}
}
""")

_NGINX = Template("""\
# A file of the `http` context of nginx 1.25.1 or newer, like /etc/nginx/conf.d/roost.conf.
# nginx obtains no certificates: the file needs the names $domain, *.$domain,
# *.agents.$domain and *.gateways.$domain. A tenant's own domain needs a `server` block
# of its own, with its certificate.
map $$http_upgrade $$roost_connection {
    default upgrade;
    ''      '';
}

upstream roost {
    server $upstream;
    keepalive 64;
}

server {
    listen 80;
    listen [::]:80;
    server_name $domain *.$domain;
    return 308 https://$$host$suffix$$request_uri;
}

server {
    listen $port ssl;
    listen [::]:$port ssl;
    http2 on;
    server_name $domain *.$domain;
    ssl_certificate $certificate;
    ssl_certificate_key $key;
    ssl_protocols TLSv1.2 TLSv1.3;

    client_header_timeout 20s;
    large_client_header_buffers 4 64k;
    client_max_body_size 0;
    gzip off;

    if ($$ssl_server_name != $$host) {
        return 421;
    }

    location / {
        proxy_pass http://roost;
        proxy_http_version 1.1;
        proxy_set_header Host $$host$suffix;
        proxy_set_header Upgrade $$http_upgrade;
        proxy_set_header Connection $$roost_connection;
        proxy_set_header X-Forwarded-For $$remote_addr;
        proxy_request_buffering off;
        proxy_buffering off;
        proxy_read_timeout 24h;
        proxy_send_timeout 24h;
        proxy_hide_header Strict-Transport-Security;
        add_header Strict-Transport-Security "max-age=31536000; includeSubDomains" always;
    }
}
""")

_TRAEFIK = Template("""\
# A file of Traefik's file provider. The static configuration needs:
#   entryPoints:
#     web: {address: ":80", http: {redirections: {entryPoint: {to: websecure, scheme: https, permanent: true}}}}
#     websecure: {address: ":$port", http3: {}, transport: {respondingTimeouts: {readTimeout: 0}}}
#   providers: {file: {filename: /etc/traefik/roost.yml}}
# The files need the names $domain, *.$domain, *.agents.$domain and *.gateways.$domain.
http:
  routers:
    roost:
      rule: HostRegexp(`^(.+\\.)?$pattern$$`)
      entryPoints: [websecure]
      service: roost
      middlewares: [roost-hsts]
      tls: {}
  middlewares:
    roost-hsts:
      headers:
        stsSeconds: 31536000
        stsIncludeSubdomains: true
  services:
    roost:
      loadBalancer:
        passHostHeader: true
        servers:
          - url: http://$upstream
        responseForwarding:
          flushInterval: 1ms
tls:
  certificates:
    - certFile: $certificate
      keyFile: $key
""")

_TEMPLATES = {"caddy": _CADDY, "nginx": _NGINX, "traefik": _TRAEFIK}
