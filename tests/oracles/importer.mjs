// What ipfs-unixfs-importer says of files and folders: JSON cases in the file CASES, a line of JSON with the CIDs on stdout.
// {profile, size} is a file of the pattern repeated; {profile, names: {name: size}} a folder of such files.
import { readFileSync } from 'node:fs'
import { BlackHoleBlockstore } from 'blockstore-core'
import { importer } from 'ipfs-unixfs-importer'
import { fixedSize } from 'ipfs-unixfs-importer/chunker'
import { balanced } from 'ipfs-unixfs-importer/layout'

const { pattern: path, cases } = JSON.parse(readFileSync(process.env.CASES, 'utf8'))
const pattern = readFileSync(path)
const THRESHOLD = 262144

const PROFILES = {
  v0: { cidVersion: 0, rawLeaves: false, chunk: 262144, width: 174, strategy: 'links-bytes' },
  v1: { cidVersion: 1, rawLeaves: true, chunk: 262144, width: 174, strategy: 'links-bytes' },
  'unixfs-v1-2025': { cidVersion: 1, rawLeaves: true, chunk: 1048576, width: 1024, strategy: 'block-bytes' }
}

function * content (size) {
  for (let left = size; left > 0; left -= pattern.length) {
    yield left < pattern.length ? pattern.subarray(0, left) : pattern
  }
}

async function root ({ profile, size, names }) {
  const { cidVersion, rawLeaves, chunk, width, strategy } = PROFILES[profile]
  const source = names === undefined
    ? [{ content: content(size) }]
    : Object.entries(names).map(([name, size]) => ({ path: `folder/${name}`, content: content(size) }))
  let last
  for await (const entry of importer(source, new BlackHoleBlockstore(), {
    cidVersion,
    rawLeaves,
    reduceSingleLeafToSelf: true,
    chunker: fixedSize({ chunkSize: chunk }),
    layout: balanced({ maxChildrenPerNode: width }),
    shardSplitThresholdBytes: THRESHOLD,
    shardSplitStrategy: strategy
  })) {
    last = entry
  }
  return last.cid.toString()
}

const found = []
for (const one of cases) {
  found.push(await root(one))
}
console.log(JSON.stringify(found))
