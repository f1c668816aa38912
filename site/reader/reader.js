// The description of this server, without what would leave it: other hosts, fonts, telemetry, requests from the page.
Scalar.createApiReference('#reader', {
  url: '/openapi',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultOpenFirstTag: false,
  documentDownloadType: 'none',
  hideClientButton: true,
  hideTestRequestButton: true,
  showDeveloperTools: 'never',
  telemetry: false,
  withDefaultFonts: false,
});
