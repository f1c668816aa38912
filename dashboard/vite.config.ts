import optimizeLocales from '@react-aria/optimize-locales-plugin';
import react from '@vitejs/plugin-react';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

import { thirdPartyNotices } from './notices';

/** Where `npm run dev` finds a server. It gets its own origin, so that sessions work through the proxy. */
const server = process.env.ROOST_URL ?? 'http://localhost:8642';
const target = { target: server, changeOrigin: true, ws: true, headers: { Origin: server } };

export default defineConfig({
  plugins: [
    react(),
    { ...optimizeLocales.vite({ locales: ['en-US', 'de-DE'] }), enforce: 'pre' },
    thirdPartyNotices('third-party-notices.txt'),
  ],
  resolve: {
    alias: {
      // Its form for browsers decodes by `innerHTML`, which the content security policy forbids.
      'decode-named-character-reference': fileURLToPath(
        import.meta.resolve('decode-named-character-reference').replace(/index(\.dom)?\.js$/, 'index.js'),
      ),
    },
  },
  build: {
    outDir: 'build/static', // which `make dashboard` moves to the server
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: URLs of fonts and styles
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/v0': target, '/v3': target } },
});
