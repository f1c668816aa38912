"""Responses of a site for paths that it does not contain: its `_redirects` file, else its `404.html`.

A site is a folder on an origin of its own. All of it is content of strangers, read within bounds.
"""

from collections.abc import Sequence
from dataclasses import replace

from roost.http.storage_gateway.content_responses import FOLDER_KINDS, ContentResponses
from roost.http.storage_gateway.errors import InvalidRedirectsFile, PathNotFound, UnreadablePath
from roost.http.storage_gateway.formats import accepts_html, negotiate_format
from roost.http.storage_gateway.headers import cache_control, common_headers
from roost.http.storage_gateway.redirects_file import (
    MAX_FILE_BYTES,
    REDIRECTS_FILE,
    RedirectRule,
    find_target,
    join_query,
    parse_redirects,
)
from roost.http.storage_gateway.request import GatewayRequest
from roost.http.storage_gateway.resolver import GatewayResolver, ResolvedContent
from roost.http.storage_gateway.response import GatewayResponse, text_response
from roost.storage.content.errors import ContentNotAFile, ContentNotFound, TooDeep
from roost.storage.content.unixfs.errors import MalformedContent
from roost.web.errors import problem_headers

_NOT_FOUND_PAGE = "404.html"
_CONTENT_ONLY = ("Accept-Ranges", "ETag")
"""Headers of content that mean nothing on an error page."""


class SitePages:
    def __init__(self, resolver: GatewayResolver, responses: ContentResponses) -> None:
        self._resolver = resolver
        self._responses = responses

    async def create_response(
        self, request: GatewayRequest
    ) -> tuple[GatewayResponse, tuple[GatewayRequest, ResolvedContent]]:
        """Create the response to a request whose path does not exist, with the request and content that it is of.

        Raises PathNotFound if the site has none, InvalidRedirectsFile, and what the resolver and the responses raise.
        """
        if not request.is_site or negotiate_format(request) is not None:  # programs verify a path or its absence
            raise PathNotFound
        site = await self._resolver.resolve(replace(request, path=()))
        target = find_target(await self._read_rules(site), request.path)
        if target is not None and target.is_redirect:
            headers = common_headers(request, site) | {
                "Cache-Control": cache_control(site, is_derived=True),
                "Location": join_query(target.url, request.query_string),
            }
            return text_response(target.status, "Moved", headers), (request, site)
        if target is not None and target.status >= 400:
            return await self._error_page(request, site, target.path, target.status), (request, site)
        try:
            if target is not None:
                return await self._rewrite(request, site, target.path)
        except PathNotFound:
            pass
        if not accepts_html(request):
            raise PathNotFound
        return await self._error_page(request, site, (_NOT_FOUND_PAGE,), 404), (request, site)

    async def _rewrite(
        self, request: GatewayRequest, site: ResolvedContent, path: Sequence[str]
    ) -> tuple[GatewayResponse, tuple[GatewayRequest, ResolvedContent]]:
        """Serve another path in place of the requested one. Raises PathNotFound."""
        content = await self._resolver.resolve_path(site, path)
        request = replace(request, path=path, slash=content.end.kind in FOLDER_KINDS)
        response = await self._responses.create_response(request, content)
        if "ETag" in response.headers and response.status < 400:
            headers = {**response.headers, "Cache-Control": cache_control(site, is_derived=True)}
            response = replace(response, headers=headers)
        return response, (request, content)

    async def _error_page(
        self, request: GatewayRequest, site: ResolvedContent, path: Sequence[str], status: int
    ) -> GatewayResponse:
        """Serve a page of the site with the status of an error; conditions and ranges do not apply to it."""
        try:
            response, _ = await self._rewrite(replace(request, headers={}, query={}), site, path)
        except PathNotFound:
            return text_response(status, PathNotFound.message, problem_headers(PathNotFound()))
        headers = {name: value for name, value in response.headers.items() if name not in _CONTENT_ONLY}
        return replace(response, status=status, headers=headers)

    async def _read_rules(self, site: ResolvedContent) -> Sequence[RedirectRule]:
        """Read the rules of a site, none if it has no `_redirects` file. Raises InvalidRedirectsFile."""
        try:
            file = await self._resolver.resolve_path(site, (REDIRECTS_FILE,))
            return parse_redirects(await self._responses.read_beginning(file, MAX_FILE_BYTES + 1))
        except PathNotFound:
            return ()
        except (UnreadablePath, ContentNotAFile, ContentNotFound, MalformedContent, TooDeep):
            raise InvalidRedirectsFile("The _redirects file cannot be read") from None
