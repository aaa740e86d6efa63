// Runs the steps of a tool on Tailgate and on PostgreSQL; a check passes if both have the same result.
import { check, done } from './tap.js'

export const SCHEMA = 'orms'
const PORTS = { tailgate: process.env.PGPORT, postgres: process.env.CONTROL_PORT }

/**
 * Runs the steps of a tool on both servers, in the order in which they are given.
 *
 * `open` gets a port and returns the tool's connection. A step gets it, and an object that steps share.
 * What it returns is compared as JSON. An error of PostgreSQL is a mistake of the step: steps catch those that they expect.
 */
export async function compare(open, close, steps) {
  const servers = []
  for (const [name, port] of Object.entries(PORTS)) servers.push({ name, db: await open(Number(port)), shared: {} })
  for (const [name, step] of Object.entries(steps)) {
    await check(name, async () => {
      const results = await Promise.all(servers.map(({ db, shared }) => result(() => step(db, shared))))
      const [ours, theirs] = results
      if (theirs.error) throw new Error(`PostgreSQL: ${theirs.error}`)
      if (ours.error) throw new Error(ours.error)
      if (ours.value !== theirs.value) throw new Error(difference(ours.value, theirs.value))
    })
  }
  for (const { db } of servers) await close(db)
  done()
}

async function result(work) {
  try {
    return { value: JSON.stringify((await work()) ?? null, null, 1) }
  } catch (error) {
    const cause = error.parent ?? error.driverError ?? error.cause ?? error
    return { error: `${cause.code ?? error.code} ${cause.message ?? error.message} in ${cause.sql ?? error.query ?? error.sql ?? ''}` }
  }
}

function difference(ours, theirs) {
  const [a, b] = [ours.split('\n'), theirs.split('\n')]
  const at = a.findIndex((line, i) => line !== b[i])
  const part = (lines) => lines.slice(Math.max(0, at - 3), at + 5).map((line) => line.trim()).join(' ')
  return `${part(a)} and not ${part(b)}`
}

/** The SQLSTATE of an error that a step expects. */
export async function refused(work) {
  try {
    await work()
  } catch (error) {
    return [(error.parent ?? error.driverError ?? error.cause ?? error).code, error.name]
  }
  return 'no error'
}
